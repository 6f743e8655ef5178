package credentials

import (
	"encoding/base64"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/limits"
)

func TestSecretsAtTheirBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	random := func(n, letters int) string {
		b, alphabet := make([]byte, n), r.Perm('~' - '!')[:letters]
		for i := range b {
			b[i] = byte('!' + alphabet[r.IntN(letters)])
		}
		return string(b)
	}
	limits.AtLeast(t, "minSecret", minSecret, func(n int) bool {
		err := judge(random(n, 30)) // one of so few bytes can always be guessed
		return err != nil && !strings.Contains(err.Error(), "too few")
	})
	limits.AtLeast(t, "minBits", minBits, func(n int) bool {
		secret := ""
		for estimate(secret) != n {
			secret = random(20+r.IntN(20), 8+r.IntN(30))
		}
		return judge(secret) == nil
	})
	// The base64 of one byte more has two characters more.
	limits.AtMost(t, "maxDerived, in bytes", base64.RawURLEncoding.DecodedLen(maxDerived), func(n int) bool {
		payload := make([]byte, n-len(checksum(derivedPrefix, nil)))
		secret := derivedPrefix + base64.RawURLEncoding.EncodeToString(append(payload,
			checksum(derivedPrefix, payload)...))
		got, err := unpackDerived(secret)
		return err == nil && len(got) == len(payload)
	})
}
