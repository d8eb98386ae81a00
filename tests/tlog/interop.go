// interop reads a log that tlog_tool made, with golang.org/x/mod/sumdb, and makes a
// proof for tlog_tool to read.
//
//	interop DIR
//
// Prints one line per check, "ok NAME" or "not ok NAME".
package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

func check(good bool, name string) {
	if good {
		fmt.Println("ok", name)
	} else {
		fmt.Println("not ok", name)
	}
}

func must(err error) {
	if err != nil {
		fmt.Println("not ok", err)
		os.Exit(1)
	}
}

func least(a, b int64) int64 {
	if a < b {
		return a
	}
	return b
}

// A key of type 4, which the package does not know.
type cosigner struct {
	name string
	hash uint32
	key  ed25519.PublicKey
}

func (c cosigner) Name() string    { return c.name }
func (c cosigner) KeyHash() uint32 { return c.hash }
func (c cosigner) Verify(msg, sig []byte) bool {
	if len(sig) != 72 {
		return false
	}
	time := binary.BigEndian.Uint64(sig)
	return ed25519.Verify(c.key, []byte(fmt.Sprintf("cosignature/v1\ntime %d\n%s", time, msg)), sig[8:])
}

func newCosigner(vkey string) cosigner {
	part := strings.SplitN(vkey, "+", 3)
	data, err := base64.StdEncoding.DecodeString(part[2])
	must(err)
	sum := sha256.Sum256([]byte(part[0] + "\n" + string(data)))
	hash := binary.BigEndian.Uint32(sum[:])
	check(data[0] == 4 && fmt.Sprintf("%08x", hash) == part[1], "the id of "+part[0])
	return cosigner{part[0], hash, data[1:]}
}

// The files of a log, as tiles of the package: it has the height in their names.
type tiles struct{ dir string }

func (t tiles) Height() int                     { return 8 }
func (t tiles) SaveTiles([]tlog.Tile, [][]byte) {}
func (t tiles) path(tile tlog.Tile) string {
	return strings.Replace(tile.Path(), "tile/8/", "tile/", 1)
}
func (t tiles) ReadTiles(want []tlog.Tile) (data [][]byte, err error) {
	for _, tile := range want {
		b, err := os.ReadFile(filepath.Join(t.dir, t.path(tile)))
		if err != nil {
			return nil, err
		}
		data = append(data, b)
	}
	return data, nil
}

func entries(dir string, n int64) (all [][]byte) {
	for i := int64(0); i*256 < n; i++ {
		tile := tlog.Tile{H: 8, L: 0, N: i, W: int(least(256, n-i*256))}
		name := strings.Replace(tile.Path(), "tile/8/0/", "tile/entries/", 1)
		b, err := os.ReadFile(filepath.Join(dir, name))
		must(err)
		for len(b) > 0 {
			size := int(binary.BigEndian.Uint16(b))
			all = append(all, b[2:2+size])
			b = b[2+size:]
		}
	}
	return all
}

type memory []tlog.Hash

func (m memory) ReadHashes(at []int64) (out []tlog.Hash, err error) {
	for _, i := range at {
		out = append(out, m[i])
	}
	return out, nil
}

func openCheckpoint(dir string) tlog.Tree {
	signed, err := os.ReadFile(filepath.Join(dir, "checkpoint"))
	must(err)
	keys, err := os.ReadFile(filepath.Join(dir, "vkeys"))
	must(err)
	vkeys := strings.Fields(string(keys))
	log, err := note.NewVerifier(vkeys[0])
	must(err)
	list := note.VerifierList(log, newCosigner(vkeys[1]), newCosigner(vkeys[2]))
	n, err := note.Open(signed, list)
	must(err)
	check(len(n.Sigs) == 3 && len(n.UnverifiedSigs) == 0, "one signature and two cosignatures verify")
	line := strings.Split(n.Text, "\n")
	size, err := strconv.ParseInt(line[1], 10, 64)
	must(err)
	root, err := tlog.ParseHash(line[2])
	must(err)
	check(line[0] == log.Name(), "the origin is the name of the key")
	bad := bytes.Replace(signed, []byte("\n"+line[1]+"\n"), []byte("\n"+line[1]+"0\n"), 1)
	_, err = note.Open(bad, list)
	check(err != nil, "a changed checkpoint does not")
	return tlog.Tree{N: size, Hash: root}
}

func hashes(words []string) (p []tlog.Hash) {
	for _, w := range words {
		var h tlog.Hash
		b, err := hex.DecodeString(w)
		must(err)
		copy(h[:], b)
		p = append(p, h)
	}
	return p
}

func equal(a, b []tlog.Hash) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func compareProofs(dir string, tree tlog.Tree, all [][]byte) {
	reader := tlog.TileHashReader(tree, tiles{dir})
	text, err := os.ReadFile(filepath.Join(dir, "proofs"))
	must(err)
	good, n := true, 0
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		word := strings.Fields(line)
		at, err := strconv.ParseInt(word[1], 10, 64)
		must(err)
		ours := hashes(word[2:])
		if word[0] == "inclusion" {
			theirs, err := tlog.ProveRecord(tree.N, at, reader)
			must(err)
			leaf := tlog.RecordHash(all[at])
			good = good && equal(ours, theirs) && tlog.CheckRecord(ours, tree.N, tree.Hash, at, leaf) == nil
			leaf[0] ^= 1
			good = good && tlog.CheckRecord(ours, tree.N, tree.Hash, at, leaf) != nil
		} else if at < tree.N {
			theirs, err := tlog.ProveTree(tree.N, at, reader)
			must(err)
			old, err := tlog.TreeHash(at, reader)
			must(err)
			good = good && equal(ours, theirs) && tlog.CheckTree(ours, tree.N, tree.Hash, at, old) == nil
			old[0] ^= 1
			good = good && tlog.CheckTree(ours, tree.N, tree.Hash, at, old) != nil
		}
		n++
	}
	check(good && int64(n) >= least(80, 2*tree.N), fmt.Sprintf("%d proofs are those of Go, made from our tiles, and hold", n))
}

// A log of Go's own: a proof of its entry 41, with a policy.
func makeProof(dir string) {
	var stored memory
	for i := int64(0); i < 300; i++ {
		h, err := tlog.StoredHashes(i, []byte(fmt.Sprintf("go %d", i)), stored)
		must(err)
		stored = append(stored, h...)
	}
	root, err := tlog.TreeHash(300, stored)
	must(err)
	proof, err := tlog.ProveRecord(300, 41, stored)
	must(err)
	skey, vkey, err := note.GenerateKey(rand.Reader, "go.example/log")
	must(err)
	signer, err := note.NewSigner(skey)
	must(err)
	text := fmt.Sprintf("go.example/log\n300\n%s\n", root)
	signed, err := note.Sign(&note.Note{Text: text}, signer)
	must(err)
	out := "c2sp.org/tlog-proof@v1\nindex 41\n"
	for _, h := range proof {
		out += h.String() + "\n"
	}
	must(os.WriteFile(filepath.Join(dir, "go.tlog-proof"), []byte(out+"\n"+string(signed)), 0o644))
	must(os.WriteFile(filepath.Join(dir, "go.entry"), []byte("go 41"), 0o644))
	must(os.WriteFile(filepath.Join(dir, "go.policy"), []byte("log "+vkey+"\nquorum none\n"), 0o644))
}

func main() {
	dir := os.Args[1]
	tree := openCheckpoint(dir)
	all := entries(dir, tree.N)
	check(int64(len(all)) == tree.N, "the bundles hold every entry")
	var stored memory
	for i, e := range all {
		h, err := tlog.StoredHashes(int64(i), e, stored)
		must(err)
		stored = append(stored, h...)
	}
	root, err := tlog.TreeHash(tree.N, stored)
	must(err)
	check(root == tree.Hash, "the root of the entries is the one that is signed")
	compareProofs(dir, tree, all)
	makeProof(dir)
}
