package keys_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/keys"
)

func TestJoinAndSplit(t *testing.T) {
	for want, parts := range map[string][]string{
		"orders/order/42":        {"orders", "order", "42"},
		"a":                      {"a"},
		"files/docs%2Fa b.txt":   {"files", "docs/a b.txt"},
		"rates/100%25":           {"rates", "100%"},
		"users/J\u00fcrgen":      {"users", "J\u00fcrgen"},
		"odd/%0A%FF%C2%85\ufffd": {"odd", "\n\xff\u0085\ufffd"},
	} {
		key, err := keys.Join(parts...)
		if err != nil || key != want {
			t.Errorf("%q gives %q, %v, want %q", parts, key, err, want)
		}
		if got, err := keys.Split(key); err != nil || !slices.Equal(got, parts) {
			t.Errorf("%q has the parts %q, %v, want %q", key, got, err, parts)
		}
	}
}

func TestWhatIsNoKey(t *testing.T) {
	long := strings.Repeat("x", 508)
	for text, parts := range map[string][]string{
		"without a part": {}, "part 2": {"a", "", "c"}, `with part 3, "xxx`: {"a", "bb", long},
	} {
		key, err := keys.Join(parts...)
		if key != "" || !errors.Is(err, mortise.ErrBadKey) || !strings.Contains(err.Error(), text) {
			t.Errorf("%.20q gives %.20q, %v", parts, key, err)
		}
	}
	for _, key := range []string{"", "/", "a//b", "a/", "a%", "a%2", "a%2x", "a%2f", "a%41", "a\nb", "%", long + "/abcd"} {
		if parts, err := keys.Split(key); !errors.Is(err, mortise.ErrBadKey) {
			t.Errorf("%.20q has the parts %.20q, %v", key, parts, err)
		}
	}
}

func TestPrefix(t *testing.T) {
	prefix, err := keys.Prefix("orders", "order")
	if err != nil || prefix != "orders/order/" {
		t.Errorf("%q, %v", prefix, err)
	}
	if all, err := keys.Prefix(); err != nil || all != "" {
		t.Errorf("%q, %v", all, err)
	}
	if _, err := keys.Prefix("orders", ""); !errors.Is(err, mortise.ErrBadKey) {
		t.Error(err)
	}
}

// FuzzJoin checks that parts survive, and so that two lists of parts never give one key.
func FuzzJoin(f *testing.F) {
	f.Add("orders", "order", "42")
	f.Add("a/b", "%2F", "\xff")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		parts := []string{a, b, c}
		key, err := keys.Join(parts...)
		if err != nil {
			return
		}
		got, err := keys.Split(key)
		if err != nil || !slices.Equal(got, parts) {
			t.Errorf("%q gives %q, with the parts %q, %v", parts, key, got, err)
		}
		if prefix, err := keys.Prefix(a, b); err != nil || !strings.HasPrefix(key, prefix) {
			t.Errorf("%q does not begin with %q: %v", key, prefix, err)
		}
	})
}

// TestJoinedKeysAreValid locks what Join has made.
func TestJoinedKeysAreValid(t *testing.T) {
	node, err := mortise.Start(t.Context(), mortise.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	for _, parts := range [][]string{{"a", "\x00\x7f\u0085\xc3/%"}, {strings.Repeat("\xff", 170), "b"}} {
		key, err := keys.Join(parts...)
		if err != nil {
			t.Fatal(err)
		}
		if lock, err := node.Lock(t.Context(), key); err != nil {
			t.Errorf("%q: %v", parts, err)
		} else if err := lock.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func Example() {
	key, err := keys.Join("orders", "order", "42")
	fmt.Println(key, err)
	key, err = keys.Join("files", "document", "a/b")
	fmt.Println(key, err)
	_, err = keys.Join("orders", "order", "")
	fmt.Println(err)
	// Output:
	// orders/order/42 <nil>
	// files/document/a%2Fb <nil>
	// mortise: bad key: part 3 of ["orders" "order" ""] is empty
}
