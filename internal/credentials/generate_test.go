package credentials

import (
	"encoding/base64"
	"encoding/hex"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// outputs of "openssl rand -hex 32" and of "openssl rand -base64 24"
const (
	opensslHex    = "7cf2a1f3b1c5d0a96e4b1b7f0e55d2c8934fa6c01be77d23f4e59ab06c1d8e3f"
	opensslBase64 = "pW3kZq0vXn8+Jt5RbYcU/fGh2LaSdE7M"
)

func TestGeneratedSecrets(t *testing.T) {
	a, b := GenerateSecret(), GenerateSecret()
	if a == b || len(a) != len(rootPrefix)+72 || !strings.HasPrefix(a, rootPrefix) {
		t.Errorf("%d characters", len(a))
	}
	if err := judge(a); err != nil {
		t.Error(err)
	}
	for i := len(rootPrefix); i < len(a); i++ {
		wrong := a[:i] + "g" + a[i+1:]
		if err := judge(wrong); err == nil {
			t.Errorf("a mistake in character %d was not found", i)
		}
	}
	source(t, SecretConfig{Secret: a})
}

func TestWeakSecretsAreRefused(t *testing.T) {
	for _, weak := range []string{
		"aaaaaaaaaaaaaaaa", strings.Repeat("a", 400), strings.Repeat("ab", 200), "correct horse",
		"internationalization characteristically",
		"correct-horse-battery-staple", "CorrectHorseBatteryStaple", "a secret of sixteen bytes or more",
		"only for this test, and at least 16 bytes",
		"0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210",
		"abcdefghijklmnopqrstuvwxyz0123456789", "hunter2hunter2hunter2",
		"12345678901234567890123456789012", "P4ssw0rd!P4ssw0rd!P4ssw0rd!", "01010101101010010101010101",
		strings.Repeat("s3cr3t", 100), "grüne Äpfel fallen selten",
		"Password123!Password123!", "20260101-20270101-20280101",
	} {
		if err := judge(weak); err == nil {
			t.Errorf("%q is accepted, at %d bits", weak, estimate(weak))
		} else if strings.Contains(err.Error(), weak) {
			t.Errorf("the error quotes the secret: %v", err)
		}
	}
	for _, good := range []string{opensslHex, opensslBase64, strings.ToUpper(opensslHex)} {
		if err := judge(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
}

// The secrets that the documentation recommends must be accepted.
func TestRandomSecretsPass(t *testing.T) {
	least, random := map[string]int{}, rand.NewChaCha8([32]byte{1})
	for range 2000 {
		b := make([]byte, 32)
		_, _ = random.Read(b)
		for how, text := range map[string]string{"hex": hex.EncodeToString(b),
			"base64 24": base64.StdEncoding.EncodeToString(b[:24]), "base64 32": base64.StdEncoding.EncodeToString(b)} {
			bits := estimate(text)
			if old, ok := least[how]; !ok || bits < old {
				least[how] = bits
			}
			if bits < minBits {
				t.Errorf("%s: %q is estimated at %d bits", how, text, bits)
			}
		}
	}
	t.Log(least)
}

func FuzzEstimate(f *testing.F) {
	f.Add("correct horse")
	f.Add("\xff\xc3ä")
	f.Fuzz(func(t *testing.T, text string) {
		if bits := estimate(text); bits < 0 || bits > 8*estimated {
			t.Fatalf("%q is worth %d bits", text, bits)
		}
		_ = judge(text)
	})
}

func TestStretchingIsPaidOnce(t *testing.T) {
	slow.UnderRace(t)
	var s stretcher
	first, err := s.get(opensslHex, "orders")
	if err != nil || len(first) != 32 {
		t.Fatal(err)
	}
	begun := time.Now()
	var all sync.WaitGroup
	for range 1000 {
		all.Go(func() {
			if again, _ := s.get(opensslHex, "orders"); &again[0] != &first[0] {
				t.Error("stretched again")
			}
		})
	}
	all.Wait()
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("a thousand nodes paid %v", took)
	}
	if other, _ := s.get(opensslHex, "billing"); string(other) == string(first) {
		t.Error("two clusters have one stretched secret")
	}
	for i := range 3 * stretchKept {
		s.entry([32]byte{byte(i), byte(i >> 8), 1})
	}
	if len(s.kept) != stretchKept || len(s.order) != stretchKept {
		t.Errorf("%d results are kept", len(s.kept))
	}
	if text, err := keying(secretA, "orders"); err != nil || string(text) != secretA {
		t.Error("a generated secret is used as it is")
	}
	if text, err := keying(opensslHex, "orders"); err != nil || string(text) == opensslHex {
		t.Error("another secret is not stretched")
	}
}
