// peers verifies tlog-proof files with golang.org/x/mod/sumdb.
//
//	peers PROOF ENTRY VKEY...
//
// Every one of the keys, the log's first, must have signed. Prints "ok" or why not.
package main

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

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
	head := fmt.Sprintf("cosignature/v1\ntime %d\n", binary.BigEndian.Uint64(sig))
	return ed25519.Verify(c.key, append([]byte(head), msg...), sig[8:])
}

func verifier(vkey string) (note.Verifier, error) {
	part := strings.SplitN(vkey, "+", 3)
	if len(part) != 3 {
		return nil, errors.New("no vkey")
	}
	data, err := base64.StdEncoding.DecodeString(part[2])
	if err != nil || len(data) != 33 || data[0] != 4 {
		return note.NewVerifier(vkey)
	}
	sum := sha256.Sum256([]byte(part[0] + "\n" + string(data)))
	return cosigner{part[0], binary.BigEndian.Uint32(sum[:]), data[1:]}, nil
}

func open(signed string, vkeys []string) (tree tlog.Tree, err error) {
	var list []note.Verifier
	for _, k := range vkeys {
		v, err := verifier(k)
		if err != nil {
			return tree, err
		}
		list = append(list, v)
	}
	n, err := note.Open([]byte(signed), note.VerifierList(list...))
	if err != nil {
		return tree, err
	}
	if len(n.Sigs) != len(list) {
		return tree, fmt.Errorf("%d of %d have signed", len(n.Sigs), len(list))
	}
	line := strings.Split(n.Text, "\n")
	if len(line) != 4 || line[0] != list[0].Name() {
		return tree, errors.New("the log has another name, or the text other lines")
	}
	if tree.N, err = strconv.ParseInt(line[1], 10, 64); err != nil {
		return tree, err
	}
	tree.Hash, err = tlog.ParseHash(line[2])
	return tree, err
}

func check(proof, entry string, vkeys []string) error {
	head, signed, found := strings.Cut(proof, "\n\n")
	line := strings.Split(head, "\n")
	if !found || line[0] != "c2sp.org/tlog-proof@v1" || len(line) < 2 {
		return errors.New("no proof")
	}
	line = line[1:]
	if strings.HasPrefix(line[0], "extra ") {
		line = line[1:]
	}
	index, err := strconv.ParseInt(strings.TrimPrefix(line[0], "index "), 10, 64)
	if err != nil {
		return err
	}
	var path tlog.RecordProof
	for _, l := range line[1:] {
		h, err := tlog.ParseHash(l)
		if err != nil {
			return err
		}
		path = append(path, h)
	}
	tree, err := open(signed, vkeys)
	if err != nil {
		return err
	}
	return tlog.CheckRecord(path, tree.N, tree.Hash, index, tlog.RecordHash([]byte(entry)))
}

func main() {
	proof, err := os.ReadFile(os.Args[1])
	if err == nil {
		var entry []byte
		if entry, err = os.ReadFile(os.Args[2]); err == nil {
			err = check(string(proof), string(entry), os.Args[3:])
		}
	}
	if err != nil {
		fmt.Println("no", err)
		os.Exit(1)
	}
	fmt.Println("ok")
}
