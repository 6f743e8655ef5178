package credentials

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// folder is a directory with the three files of one node.
type folder struct {
	t     *testing.T
	clock *wall
	log   bytes.Buffer
	cfg   FilesConfig
}

func newFolder(t *testing.T) *folder {
	dir := t.TempDir()
	f := &folder{t: t, clock: &wall{now: noon}}
	f.cfg = FilesConfig{
		CertFile: filepath.Join(dir, "tls.crt"), KeyFile: filepath.Join(dir, "tls.key"),
		CAFile: filepath.Join(dir, "ca.crt"),
		Names:  Names{Peers: []string{"node.test"}}, Logger: slog.New(slog.NewTextHandler(&f.log, nil)), Now: f.clock.Now,
	}
	return f
}

func (f *folder) write(name string, text []byte) {
	f.t.Helper()
	// The rename changes the file's identity even if size and time stay the same.
	if err := os.WriteFile(name+".new", text, 0o600); err != nil {
		f.t.Fatal(err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		f.t.Fatal(err)
	}
}

func block(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func (f *folder) writePair(pair tls.Certificate) {
	f.t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		f.t.Fatal(err)
	}
	f.write(f.cfg.CertFile, block("CERTIFICATE", pair.Certificate[0]))
	f.write(f.cfg.KeyFile, block("PRIVATE KEY", key))
}

func (f *folder) writeAuthorities(list ...*signer) {
	f.t.Helper()
	var text []byte
	for _, s := range list {
		text = append(text, block("CERTIFICATE", s.cert.Raw)...)
	}
	f.write(f.cfg.CAFile, text)
}

func (f *folder) open() *Source {
	f.t.Helper()
	s, err := FromFiles(f.cfg)
	if err != nil {
		f.t.Fatal(err)
	}
	return s
}

func (f *folder) look() { f.clock.pass(lookEvery) }

func (f *folder) wantLines(why string, warnings, news int) {
	f.t.Helper()
	text := f.log.String()
	if w, n := strings.Count(text, "level=WARN"), strings.Count(text, "level=INFO"); w != warnings || n != news {
		f.t.Errorf("%s: %d warnings and %d news, want %d and %d:\n%s", why, w, n, warnings, news, text)
	}
}

func TestFilesAreReloaded(t *testing.T) {
	ca, next := newSigner(t, "ca"), newSigner(t, "next")
	f := newFolder(t)
	f.writePair(ca.pair(t))
	f.writeAuthorities(ca)
	s := f.open()
	peer := fromTLS(t, given(t, ca))
	server := s.ServerTLS() // kept for the whole test, as a listener keeps it
	shown := func() string { return peerSerial(t, server, peer.ClientTLS()) }
	byTime := func(minutes int) func(*x509.Certificate) {
		return func(c *x509.Certificate) { c.NotAfter = noon.Add(time.Duration(minutes) * time.Minute) }
	}
	wantTalk(t, "it dials", peer.ServerTLS(), s.ClientTLS())
	first := shown()
	f.writePair(ca.pair(t, byTime(30)))
	if got := shown(); got != first {
		t.Errorf("the files were looked at again within a second: %s", got)
	}
	f.look()
	if got := shown(); !strings.HasSuffix(got, "until 2030-05-17T12:30:00Z") {
		t.Errorf("the new certificate is not shown, but %s", got)
	}
	f.wantLines("reloaded", 0, 1)
	_, _, seen := handshake(t, peer.ServerTLS(), s.ClientTLS())
	if seen.Version != tls.VersionTLS13 {
		t.Error("it does not dial with the new one")
	}
	for range 5 {
		f.look()
		shown()
	}
	f.wantLines("unchanged", 0, 1)

	newPeer := fromTLS(t, given(t, next))
	wantRefused(t, "not trusted yet", server, newPeer.ClientTLS(), "refuses our certificate", "not trusted here")
	f.writeAuthorities(ca, next)
	f.writePair(next.pair(t))
	f.look()
	wantTalk(t, "the new authority is accepted by the kept configuration", server, newPeer.ClientTLS())
	wantTalk(t, "the new authority is dialed", newPeer.ServerTLS(), s.ClientTLS())
	if got, err := meet(t, server, presenting(ca.pair(t))); got != nil || err != nil {
		t.Errorf("the old authority is not trusted any more: %v, %v", got, err)
	}
}

func TestBrokenFilesKeepTheOldOnes(t *testing.T) {
	slow.UnderRace(t)
	ca := newSigner(t, "ca")
	f := newFolder(t)
	f.writePair(ca.pair(t))
	f.writeAuthorities(ca)
	s, peer := f.open(), fromTLS(t, given(t, ca))
	first := peerSerial(t, s.ServerTLS(), peer.ClientTLS())
	good, _ := os.ReadFile(f.cfg.CertFile)
	warnings := 0
	for name, breakIt := range map[string]func(){
		"cut":            func() { f.write(f.cfg.CertFile, good[:len(good)/2]) },
		"empty":          func() { f.write(f.cfg.CertFile, nil) },
		"of another key": func() { f.write(f.cfg.CertFile, block("CERTIFICATE", ca.pair(t).Certificate[0])) },
		"gone":           func() { os.Remove(f.cfg.CertFile) },
		"a directory":    func() { os.Remove(f.cfg.CertFile); os.Mkdir(f.cfg.CertFile, 0o700) },
		"far too large":  func() { f.write(f.cfg.CertFile, make([]byte, maxFile+1)) },
		"no authorities": func() { f.write(f.cfg.CAFile, []byte("none")) },
		"half authorities": func() {
			f.write(f.cfg.CAFile, append(block("CERTIFICATE", ca.cert.Raw),
				good[:len(good)/2]...))
		},
		"a key as one":   func() { f.write(f.cfg.CAFile, block("PRIVATE KEY", []byte{1})) },
		"garbage as one": func() { f.write(f.cfg.CAFile, block("CERTIFICATE", []byte{1})) },
	} {
		breakIt()
		warnings++
		for range 4 {
			f.look()
			if got := peerSerial(t, s.ServerTLS(), peer.ClientTLS()); got != first {
				t.Errorf("%s: shows %s", name, got)
			}
			wantTalk(t, name, peer.ServerTLS(), s.ClientTLS())
		}
		f.wantLines(name, warnings, warnings-1)
		if _, err := FromFiles(f.cfg); err == nil || !strings.HasPrefix(err.Error(), "Config.TLS: ") {
			t.Errorf("%s: a node starts with it: %v", name, err)
		}
		os.Remove(f.cfg.CertFile)
		f.write(f.cfg.CertFile, good)
		f.writeAuthorities(ca)
		f.look()
		peerSerial(t, s.ServerTLS(), peer.ClientTLS())
		f.wantLines(name+", mended", warnings, warnings)
	}
}

// A disk that hangs must delay only one handshake.
func TestASlowDiskHoldsUpOne(t *testing.T) {
	ca := newSigner(t, "ca")
	f := newFolder(t)
	f.writePair(ca.pair(t))
	f.writeAuthorities(ca)
	inside, release := make(chan struct{}), make(chan struct{})
	// The test can block a check of the files only when the check logs a line.
	f.cfg.Logger = slog.New(hanging{slog.DiscardHandler, t, new(atomic.Int32), inside, release})
	s := f.open()
	peer := fromTLS(t, given(t, ca))
	f.writePair(ca.pair(t))
	f.look()
	var all sync.WaitGroup
	all.Go(func() { s.ClientTLS() })
	<-inside
	f.writePair(ca.pair(t))
	f.look() // a second check is due, but must not begin during the first
	wantTalk(t, "while another handshake looks", s.ServerTLS(), peer.ClientTLS())
	close(release)
	all.Wait()
	wantTalk(t, "afterwards", s.ServerTLS(), peer.ClientTLS())
}

// hanging is a log that blocks on the first line, and reports a second line during that time as an
// error.
type hanging struct {
	slog.Handler
	t               *testing.T
	lines           *atomic.Int32
	inside, release chan struct{}
}

func (h hanging) Enabled(context.Context, slog.Level) bool { return true }

func (h hanging) Handle(context.Context, slog.Record) error {
	if h.lines.Add(1) == 1 {
		close(h.inside)
		<-h.release
		return nil
	}
	select {
	case <-h.release:
	default:
		h.t.Error("two handshakes check the files at once")
	}
	return nil
}
