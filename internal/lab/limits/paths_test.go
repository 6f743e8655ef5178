package limits_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/fence"
	"github.com/mortise-lock/mortise/internal/lab/limits"
)

// certificateFiles writes a certificate with the serial number, its key and its authority to the
// files cert, key and ca in dir.
func certificateFiles(t *testing.T, dir string, serial int64) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), DNSNames: []string{"node"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		"cert": {Type: "CERTIFICATE", Bytes: cert}, "key": {Type: "PRIVATE KEY", Bytes: key},
		"ca": {Type: "CERTIFICATE", Bytes: cert},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// tryCertificates renews the files in the former working directory. A later handshake must use the
// new ones.
func tryCertificates(t *testing.T, leave func()) {
	before, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	bubble(t, func(t *testing.T) {
		certificateFiles(t, before, 1)
		_, network, err := start(t, mortise.Config{
			Bind: "10.0.0.1:7947", TLSFiles: mortise.TLSFiles{Cert: "cert", Key: "key", CA: "ca"}, TLSPeers: []string{"node"},
		})
		if err != nil {
			t.Fatal(err)
		}
		serial := func() int64 {
			t.Helper()
			raw, err := network.Dialer("10.0.0.2")(t.Context(), "10.0.0.1:7947")
			if err != nil {
				t.Fatal(err)
			}
			conn := tls.Client(raw, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
			defer conn.Close()
			if err := conn.HandshakeContext(t.Context()); err != nil {
				t.Fatal(err)
			}
			return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
		}
		if got := serial(); got != 1 {
			t.Errorf("the first certificate has number %d", got)
		}
		leave()
		certificateFiles(t, before, 2)
		time.Sleep(10 * time.Second)
		if got := serial(); got != 2 {
			t.Errorf("after the change of the working directory the certificate has number %d", got)
		}
	})
}

var pathTrials = map[string]func(*testing.T, func()){
	// The directory is checked every 2 s, and written to every 10 s.
	"Config.Dir": func(t *testing.T, leave func()) {
		bubble(t, func(t *testing.T) {
			n, _, err := start(t, mortise.Config{Dir: "data"})
			if err != nil {
				t.Fatal(err)
			}
			if err := n.Ready(t.Context()); err != nil {
				t.Fatal(err)
			}
			leave()
			time.Sleep(time.Minute)
			if fault := n.Status().Disk; fault != nil {
				t.Error(fault)
			}
		})
		empty(t)
	},
	// The key is stored when the node joins a group.
	"Config.RunDir": func(t *testing.T, leave func()) {
		before, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		bubble(t, func(t *testing.T) {
			n, _, err := start(t, mortise.Config{RunDir: "run"})
			if err != nil {
				t.Fatal(err)
			}
			leave()
			if err := n.Ready(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
		if _, err := os.Stat(filepath.Join(before, "run", "lock")); err != nil {
			t.Error(err)
		}
		empty(t)
	},
	"TLSFiles.Cert": tryCertificates, "TLSFiles.Key": tryCertificates, "TLSFiles.CA": tryCertificates,
	"fence.Files.Dir": func(t *testing.T, _ func()) {
		limits.Refused(t, fence.Files{Dir: "marks"}.Advance(t.Context(), "r", 1), "Files.Dir")
	},
	// A relative path names another file after the change, as it does for os.WriteFile.
	"fence.WriteFile(path)": func(t *testing.T, leave func()) {
		before, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		if err := fence.WriteFile(t.Context(), "report", 6, []byte("six"), 0o600); err != nil {
			t.Fatal(err)
		}
		leave()
		empty(t)
		if err := fence.WriteFile(t.Context(), "report", 5, []byte("five"), 0o600); err != nil {
			t.Error(err)
		}
		if text, err := os.ReadFile(filepath.Join(before, "report")); string(text) != "six" {
			t.Errorf("the first file has %q: %v", text, err)
		}
	},
}

// empty checks that nothing is in the present working directory.
func empty(t *testing.T) {
	t.Helper()
	entries, err := os.ReadDir(".")
	if err != nil || len(entries) != 0 {
		t.Errorf("in the new working directory are %v: %v", entries, err)
	}
}
