package transport

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/leftover"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/internal/nodeid"
	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

// idleLinkBytes limits the heap and the stacks of an idle link on the accepting side, with TLS.
const idleLinkBytes = 40 << 10

func TestMain(m *testing.M) { os.Exit(leftover.Run(m)) }

// dialersEnv makes this test binary the dialing process of TestIdleLinksAreSmall. Its value is the
// address, the port's instance, and the certificate and the key of the authority, separated by
// commas.
const dialersEnv = "MORTISE_TEST_DIALERS"

const idleLinks = 400

// A leader keeps a link to every attached instance. The dialers run in another process, so that
// only the memory of one side is measured.
func TestIdleLinksAreSmall(t *testing.T) {
	slow.UnderRace(t)
	for _, encrypted := range []bool{false, true} {
		t.Run(fmt.Sprintf("TLS=%v", encrypted), func(t *testing.T) {
			a := newAuthority(t)
			leader := realNode(t, 1, func(c *Config) {
				if encrypted {
					a.use(c)
				}
			})
			var frames atomic.Int64
			leader.mu.Lock()
			leader.onFrame = func(Identity, Frame) { frames.Add(1) }
			leader.mu.Unlock()
			key, err := x509.MarshalECPrivateKey(a.key)
			if err != nil {
				t.Fatal(err)
			}
			parts := []string{leader.identity.Addr, base64.StdEncoding.EncodeToString(leader.identity.Instance[:]),
				"", ""}
			if encrypted {
				parts[2], parts[3] = base64.StdEncoding.EncodeToString(a.cert.Raw),
					base64.StdEncoding.EncodeToString(key)
			}
			before, goroutines := memoryInUse(), runtime.NumGoroutine()
			cmd := exec.Command(os.Args[0], "-test.run=^TestDialersOfIdleLinks$")
			cmd.Env = append(os.Environ(), dialersEnv+"="+strings.Join(parts, ","))
			cmd.Stderr = os.Stderr
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				in.Close()
				_, _ = io.Copy(io.Discard, out)
				_ = cmd.Wait()
			}()
			lines := bufio.NewScanner(out)
			for lines.Scan() && lines.Text() != "linked" {
			}
			eventually(t, "not all frames have come", func() bool { return frames.Load() >= 2*idleLinks })
			leader.seen()
			each := (memoryInUse() - before) / idleLinks
			t.Logf("%d bytes and %.1f goroutines for each of %d idle links", each,
				float64(runtime.NumGoroutine()-goroutines)/idleLinks, idleLinks)
			if each > idleLinkBytes {
				t.Errorf("an idle link holds %d bytes, want at most %d", each, idleLinkBytes)
			}
		})
	}
}

func memoryInUse() int {
	for range 3 { // pooled objects survive the first collection
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}

func TestDialersOfIdleLinks(t *testing.T) {
	told, ok := os.LookupEnv(dialersEnv)
	if !ok {
		t.Skip("it is the other side of TestIdleLinksAreSmall")
	}
	parts := strings.Split(told, ",")
	raw, _ := base64.StdEncoding.DecodeString(parts[1])
	leader, _ := nodeid.FromBytes(raw)
	port := realNode(t, 2, func(c *Config) {
		if parts[2] == "" {
			return
		}
		a := &authority{t: t, pool: x509.NewCertPool()}
		der, _ := base64.StdEncoding.DecodeString(parts[2])
		a.cert, _ = x509.ParseCertificate(der)
		a.pool.AddCert(a.cert)
		der, _ = base64.StdEncoding.DecodeString(parts[3])
		a.key, _ = x509.ParseECPrivateKey(der)
		a.use(c)
		c.TLS = fresh{c.TLS.(static), a}
	})
	streams := make([]*stream, idleLinks)
	for i := range streams {
		self := &Self{Key: nodeid.NewKey(func(b []byte) { _, _ = rand.Read(b) }), Group: 7, Addr: "127.0.0.1:1"}
		s := port.begin(parts[0])
		if _, err := port.introduce(context.Background(), s, parts[0], self, wire.Hello_LINK, leader, 1); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := s.send(&wire.Frame{Renewals: make([]byte, 50), Commands: make([]byte, 100)}); err != nil {
				t.Fatal(err)
			}
		}
		streams[i] = s
	}
	fmt.Println("linked")
	_, _ = io.Copy(io.Discard, os.Stdin)
	runtime.KeepAlive(streams)
}

// fresh gives each connection its own certificate, as with real instances.
type fresh struct {
	static
	authority *authority
}

func (f fresh) ClientTLS() *tls.Config {
	c := &Config{}
	f.authority.use(c)
	return c.TLS.ClientTLS()
}
