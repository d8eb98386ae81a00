// srt.mjs MODULES ADDRESS CA TUNNEL-PORT TLS-PORT - the proxy of sandbox-runtime, by itself.
//
// One that passes everything on, and one that opens TLS. Any name is ADDRESS.
import { readFileSync } from 'node:fs'

const [modules, address, ca, tunnel, tls] = process.argv.slice(2)
const dist = `${modules}/@anthropic-ai/sandbox-runtime/dist/sandbox`
const { createHttpProxyServer } = await import(`${dist}/http-proxy.js`)
const { createMitmCA } = await import(`${dist}/mitm-ca.js`)

const lookupFor = () => (name, options, done) =>
  options.all ? done(null, [{ address, family: 4 }]) : done(null, address, 4)
const allow = { filter: () => true, lookupFor }
createHttpProxyServer(allow).listen(Number(tunnel), '127.0.0.1')
createHttpProxyServer({ ...allow, mitmCA: createMitmCA({}), tlsTerminateUpstreamCA: readFileSync(ca) })
  .listen(Number(tls), '127.0.0.1')
