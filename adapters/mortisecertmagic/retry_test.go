package mortisecertmagic

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/mortisetest"
)

// authority issues certificates, unless it is down.
type authority struct {
	down  atomic.Bool
	calls atomic.Int32
	key   *ecdsa.PrivateKey
}

func (*authority) IssuerKey() string { return "test" }

func (a *authority) Issue(_ context.Context, request *x509.CertificateRequest) (*certmagic.IssuedCertificate, error) {
	a.calls.Add(1)
	if a.down.Load() {
		return nil, errors.New("the name does not lead here yet")
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: request.DNSNames,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(90 * 24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, request.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	return &certmagic.IssuedCertificate{
		Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}, nil
}

// host is CertMagic in one instance.
func host(t *testing.T, s *Storage, ca *authority) (*certmagic.Config, *observer.ObservedLogs) {
	t.Helper()
	core, logs := observer.New(zap.ErrorLevel)
	var config *certmagic.Config
	cache := certmagic.NewCache(certmagic.CacheOptions{Logger: zap.New(core),
		GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { return config, nil }})
	t.Cleanup(cache.Stop)
	config = certmagic.New(cache, certmagic.Config{Logger: zap.New(core), Issuers: []certmagic.Issuer{ca}, Storage: s})
	return config, logs
}

// An instance loses its lock between two attempts to obtain a certificate, because its process was
// paused. Its next attempt succeeds, or finds the certificate that another instance has stored.
func TestALossBetweenTwoAttempts(t *testing.T) {
	for name, c := range map[string]struct {
		lose, other bool
	}{"no loss": {}, "a loss": {lose: true}, "a loss, and another instance obtains it": {true, true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := mortisetest.NewWith(t, 3, mortisetest.Options{MayHold: true})
				all := storages(t, cluster)
				key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
				if err != nil {
					t.Fatal(err)
				}
				ca := &authority{key: key}
				ca.down.Store(true)
				first, logs := host(t, all[0], ca)
				second, _ := host(t, all[1], ca)
				done := make(chan error, 1)
				go func() { done <- first.ObtainCertAsync(t.Context(), "orders.example") }()
				time.Sleep(10 * time.Second) // the first attempt has failed
				if c.lose {
					cluster.Lose(0)
					cluster.Ready(0)
				}
				ca.down.Store(false)
				if c.other {
					if err := second.ObtainCertSync(t.Context(), "orders.example"); err != nil {
						t.Error("the other instance:", err)
					}
				}
				select {
				case err = <-done:
				case <-time.After(2 * time.Minute): // CertMagic tries again after one
					t.Fatal("no certificate after 2 min, although the authority works and the lock is free")
				}
				if err != nil || ca.calls.Load() != 2 || logs.Len() != 2 {
					t.Errorf("%v, %d calls of the authority, %d errors in the log: %v", err, ca.calls.Load(), logs.Len(), logs.All())
				}
			})
		})
	}
}

// A caller that has lost its lock renews it only when another caller of its instance has unlocked,
// whichever unlocks first, and no lock is left.
func TestTwoCallersOfOneName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := mortisetest.NewWith(t, 3, mortisetest.Options{MayHold: true})
		all := storages(t, cluster)
		s, ctx := all[0], t.Context()
		loop := func() context.Context { return context.WithValue(ctx, certmagic.AttemptsCtxKey, new(int)) }
		one, two := loop(), loop()
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		must(s.Lock(ctx, "job"))
		must(s.RenewLockLease(one, "job", time.Minute))
		cluster.Lose(0)
		cluster.Ready(0)
		must(s.Lock(ctx, "job")) // by the second caller
		must(s.RenewLockLease(two, "job", time.Minute))
		renewed := make(chan error, 1)
		go func() { renewed <- s.RenewLockLease(one, "job", time.Minute) }()
		synctest.Wait()
		must(s.RenewLockLease(two, "job", time.Minute))
		select {
		case err := <-renewed:
			t.Fatalf("renewed while the second caller holds the lock: %v", err)
		default:
		}
		must(s.Unlock(ctx, "job")) // by the second caller
		must(<-renewed)
		if ok, err := all[1].TryLock(ctx, "job"); ok || err != nil {
			t.Errorf("the first caller does not hold the lock: %v, %v", ok, err)
		}
		must(s.Unlock(ctx, "job"))
		if info, err := cluster.Node(0).Peek(ctx, "certmagic/job"); err != nil || info.Held > 0 || len(s.held) > 0 {
			t.Errorf("%d held, %v, %d entries", info.Held, err, len(s.held))
		}
	})
}

// A caller whose context ends during Lock or RenewLockLease holds nothing later.
func TestACallerThatHasGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := mortisetest.NewWith(t, 3, mortisetest.Options{MayHold: true})
		all, ctx := storages(t, cluster), t.Context()
		if err := all[0].Lock(ctx, "job"); err != nil {
			t.Fatal(err)
		}
		cluster.Lose(0)
		cluster.Ready(0)
		if err := all[1].Lock(ctx, "job"); err != nil {
			t.Fatal(err)
		}
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		for what, err := range map[string]error{"lock": all[2].Lock(short, "job"),
			"renew": all[0].RenewLockLease(short, "job", time.Minute)} {
			if !errors.Is(err, context.DeadlineExceeded) || strings.Count(err.Error(), `"job"`) != 1 {
				t.Errorf("%s: %v", what, err)
			}
		}
		if err := errors.Join(all[1].Unlock(ctx, "job"), all[0].Unlock(ctx, "job")); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		if info, err := cluster.Node(0).Peek(ctx, "certmagic/job"); err != nil || info.Held > 0 {
			t.Errorf("a minute later %d hold the lock: %v", info.Held, err)
		}
	})
}

// An error of the Storage names what was to be done, and the name as CertMagic calls it, once.
func TestWordsOfErrors(t *testing.T) {
	cluster := mortisetest.New(t, 1)
	s := storages(t, cluster)[0]
	if err := cluster.Node(0).Close(); err != nil {
		t.Fatal(err)
	}
	for want, err := range map[string]error{
		`mortisecertmagic: lock "job": `:                      s.Lock(t.Context(), "job"),
		`mortisecertmagic: unlock "job", which is not locked`: s.Unlock(t.Context(), "job"),
		`mortisecertmagic: renew "job", which is not locked`:  s.RenewLockLease(t.Context(), "job", 0),
	} {
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Count(err.Error(), "job") != 1 {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := s.Lock(t.Context(), "job"); !errors.Is(err, mortise.ErrClosed) {
		t.Errorf("%v, want ErrClosed", err)
	}
}
