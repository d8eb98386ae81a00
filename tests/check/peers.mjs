// peers.mjs - npm's jose and @sigstore/verify, asked line by line. tests/check/peers.py runs a
// copy of it beside its node_modules.
//
// {"op":"jws","jwk":{...},"text":"..."}                  one signed text
// {"op":"bundle","bundle":{...},"pem":"...","hint":"..."}  one bundle; its subject is not hashed here
import { createInterface } from "node:readline";
import { createPublicKey } from "node:crypto";
import { compactVerify, importJWK } from "jose";
import { bundleFromJSON } from "@sigstore/bundle";
import { Verifier, toSignedEntity, toTrustMaterial } from "@sigstore/verify";
import { PublicKeyDetails, TrustedRoot } from "@sigstore/protobuf-specs";

const NO_SERVICES = { tlogThreshold: 0, ctlogThreshold: 0, timestampThreshold: 0 };

async function jws(q) {
	const key = await importJWK(q.jwk, "EdDSA");
	await compactVerify(q.text, key, { algorithms: ["EdDSA"] });
}

function bundle(q) {
	const rawBytes = createPublicKey(q.pem).export({ type: "spki", format: "der" });
	const key = { rawBytes, keyDetails: PublicKeyDetails.PKIX_ECDSA_P256_SHA_256 };
	const root = TrustedRoot.fromJSON({});
	const trust = toTrustMaterial(root, { [q.hint]: key });
	new Verifier(trust, NO_SERVICES).verify(toSignedEntity(bundleFromJSON(q.bundle)));
}

for await (const line of createInterface({ input: process.stdin })) {
	const q = JSON.parse(line);
	try {
		await (q.op === "jws" ? jws(q) : bundle(q));
		console.log("ok");
	} catch (e) {
		console.log(`no ${e.code ?? e.name}: ${e.message}`.replaceAll("\n", " "));
	}
}
