package credentials

import (
	"crypto/tls"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestClocksMayDiffer(t *testing.T) {
	here := source(t, SecretConfig{})
	for _, skew := range []time.Duration{-143 * time.Hour, -26 * time.Hour, -23 * time.Hour, -time.Minute,
		time.Minute, 23 * time.Hour, 26 * time.Hour, 143 * time.Hour, 8 * 24 * time.Hour, -8 * 24 * time.Hour} {
		there := source(t, SecretConfig{Now: at(noon.Add(skew))})
		if skew.Abs() < 24*time.Hour {
			wantTalk(t, fmt.Sprint("dialed with skew ", skew), there.ServerTLS(), here.ClientTLS())
			wantTalk(t, fmt.Sprint("dials with skew ", skew), here.ServerTLS(), there.ClientTLS())
			continue
		}
		_, err := meet(t, there.ServerTLS(), here.ClientTLS())
		// Only the server finds an error: by its clock, the client's certificate is not yet valid.
		if skew < 0 && skew > -6*24*time.Hour {
			if got := Explain(err); !strings.Contains(got, "expired or not yet valid: compare the clocks") {
				t.Errorf("skew %v: %q from %v", skew, got, err)
			}
			continue
		}
		got := Explain(err)
		if !strings.Contains(got, "the clocks differ too much") ||
			!strings.Contains(got, noon.Format(time.RFC3339)) ||
			!strings.Contains(got, noon.Add(skew).Format(time.RFC3339)) {
			t.Errorf("skew %v: %q does not name both clocks; from %v", skew, got, err)
		}
	}
}

type wall struct {
	mu  sync.Mutex
	now time.Time
}

func (w *wall) Now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *wall) set(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = now
}

func (w *wall) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

func peerSerial(t *testing.T, server, client *tls.Config) string {
	t.Helper()
	s, c, seen := handshake(t, server, client)
	if s != nil || c != nil {
		t.Fatalf("server %v, client %v", s, c)
	}
	leaf := seen.PeerCertificates[0]
	return fmt.Sprintf("%x until %s", leaf.SerialNumber, leaf.NotAfter.Format(time.RFC3339))
}

func TestRenewalInHandshakes(t *testing.T) {
	clock := &wall{now: noon}
	a, b := source(t, SecretConfig{Now: clock.Now}), source(t, SecretConfig{Now: clock.Now})
	server, client := b.ServerTLS(), a.ClientTLS() // kept for the whole test, as a listener keeps it
	first := peerSerial(t, server, client)
	clock.set(noon.Add(renewAfter - time.Second))
	if again := peerSerial(t, server, client); again != first {
		t.Errorf("renewed too early: %s, then %s", first, again)
	}
	last := first
	for day := 1; day <= 400; day += 19 {
		clock.set(noon.AddDate(0, 0, day))
		now := peerSerial(t, server, client)
		if now == last {
			t.Errorf("day %d: still %s", day, now)
		}
		last = now
	}
	clock.set(noon.AddDate(-1, 0, 0)) // the machine's clock is corrected
	if now := peerSerial(t, server, client); now == last {
		t.Error("the clock was set back by two years, and the certificate is from the future")
	}
	clock.set(clock.Now().Add(-time.Minute))
	last = peerSerial(t, server, client)
	clock.set(clock.Now().Add(-time.Minute))
	if now := peerSerial(t, server, client); now != last {
		t.Error("a minute back made a new certificate")
	}
}

func TestRenewalInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // starts in the year 2000; the clock is time.Now
		var sources [2]*Source
		for i := range sources {
			var err error
			if sources[i], err = FromSecret(SecretConfig{Secret: secretA, Cluster: "orders"}); err != nil {
				t.Fatal(err)
			}
		}
		server, client := sources[0].ServerTLS(), sources[1].ClientTLS()
		for range 30 {
			wantTalk(t, time.Now().String(), server, client)
			time.Sleep(31 * time.Hour)
		}
	})
}

func TestHandshakesAtOnce(t *testing.T) {
	clock := &wall{now: noon}
	a, b := source(t, SecretConfig{Now: clock.Now}), source(t, SecretConfig{Now: clock.Now})
	server, client := b.ServerTLS(), a.ClientTLS()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 8 { // 64 hours; several goroutines find that the certificate is old
				clock.pass(time.Hour)
				wantTalk(t, "at once", server, client)
				wantTalk(t, "at once, fresh", b.ServerTLS(), a.ClientTLS())
			}
		})
	}
	all.Wait()
}

func TestALostClockIsExplained(t *testing.T) {
	lost := source(t, SecretConfig{Now: at(time.Unix(5, 0))}) // a clock without a battery
	wantTalk(t, "two lost boards", lost.ServerTLS(), source(t, SecretConfig{Now: at(time.Unix(90, 0))}).ClientTLS())
	_, err := meet(t, lost.ServerTLS(), source(t, SecretConfig{}).ClientTLS())
	if got := Explain(err); !strings.Contains(got, "its clock showed 1970-01-01T00:00:05Z") {
		t.Errorf("%q from %v", got, err)
	}
}
