package guest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mortise-lock/mortise"
)

func TestNoSecretIsPrinted(t *testing.T) {
	const secret, old = "k1XcWmTq8Zr0sYb4uN7dQh5Ve2Rg9JyB", "Vp3hGf9oLj2aEw6iKx5mTz8Sc4Xn7DuP"
	g, err := Open(mortise.Config{Name: "a", Join: []string{"127.0.0.1:1"}, Secret: secret, OldSecrets: []string{old}})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(verb, g); strings.Contains(text, secret) || strings.Contains(text, old) {
			t.Errorf("%s prints a secret: %s", verb, text)
		}
	}
}
