package main

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strings"
)

// tokenLeast is the minimum length of a token in bytes. In base64, 22 characters hold 128 bits.
const tokenLeast = 22

// agentToken is the name of the variable that contains a token. With _FILE appended, it is the name
// of the variable that contains the path of a file of tokens.
const agentToken = prefix + "_AGENT_TOKEN"

// tokens contains the hashes of the accepted tokens, one for each client. Nil means that no token
// is needed.
type tokens [][sha256.Size]byte

func (c *call) readTokens(path, one string) (tokens, error) {
	lines := []string{one}
	switch {
	case path == "" && one == "":
		return nil, nil
	case path != "" && one != "":
		return nil, errors.New("-token-file is set together with " + agentToken + ": set only one of them")
	case path != "":
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("-token-file: %w", err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("-token-file: %w", err)
		}
		if perm := info.Mode().Perm(); perm&0o007 != 0 && runtime.GOOS != "windows" {
			c.warn("agent", fmt.Errorf("%s has the mode %04o: every user of this machine can read or replace the tokens; "+
				"run chmod 600 %[1]s, and make new ones", path, perm))
		}
		lines = strings.Split(string(text), "\n")
	}
	var all tokens
	for _, line := range lines {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if len(line) < tokenLeast {
			return nil, fmt.Errorf("token %d has %d bytes, less than %d: make one with openssl rand -hex 32",
				len(all)+1, len(line), tokenLeast)
		}
		all = append(all, sha256.Sum256([]byte(line)))
	}
	if all == nil {
		return nil, errors.New("-token-file: " + path + " has no token")
	}
	return all, nil
}

// which(r) is the number of the token in the request r, counted from 1. It is 0 if the token is
// not accepted. The comparison takes the same time for wrong and right tokens.
func (ts tokens) which(r *http.Request) (found int) {
	shown, ok := bearer(r)
	sum := sha256.Sum256([]byte(shown))
	for i := range ts {
		found = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(sum[:], ts[i][:]), i+1, found)
	}
	if !ok {
		return 0
	}
	return found
}

// bearer returns the token in the header Authorization of a request. For some paths it also accepts
// the password of Basic authentication: see takesBasic.
func bearer(r *http.Request) (shown string, ok bool) {
	if _, password, basic := r.BasicAuth(); basic && takesBasic(r) {
		return password, true
	}
	return strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
}

type programKey struct{}

func programOf(r *http.Request) *program {
	p, _ := r.Context().Value(programKey{}).(*program)
	return p
}
