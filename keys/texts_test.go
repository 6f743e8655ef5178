package keys_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mortise-lock/mortise/keys"
)

// TestEachByteOfAPart joins each byte and reads it back. What is escaped is compared with the rule.
func TestEachByteOfAPart(t *testing.T) {
	for c := range 256 {
		part := "a" + string([]byte{byte(c)}) + "b"
		want := part
		if c < ' ' || c >= 0x7f || c == '/' || c == '%' {
			want = fmt.Sprintf("a%%%02Xb", c)
		}
		key, err := keys.Join(part)
		if err != nil || key != want {
			t.Errorf("%q gives %q, %v, want %q", part, key, err, want)
		}
		if parts, err := keys.Split(key); err != nil || len(parts) != 1 || parts[0] != part {
			t.Errorf("%q has the parts %q, %v", key, parts, err)
		}
	}
}

// TestWhatIsSaidOfAKey compares the whole error of each refusal. There is no result beside it.
func TestWhatIsSaidOfAKey(t *testing.T) {
	long := strings.Repeat("x", 513)
	join := func(parts ...string) func() (string, error) {
		return func() (string, error) { return keys.Join(parts...) }
	}
	split := func(key string) func() (string, error) {
		return func() (string, error) {
			parts, err := keys.Split(key)
			return strings.Join(parts, "|"), err
		}
	}
	prefix := func(parts ...string) func() (string, error) {
		return func() (string, error) { return keys.Prefix(parts...) }
	}
	for _, row := range []struct {
		do   func() (string, error)
		want string
	}{
		{join(), ` mortise: bad key: keys.Join without a part`},
		{join("a", ""), ` mortise: bad key: part 2 of ["a" ""] is empty`},
		{join(""), ` mortise: bad key: part 1 of [""] is empty`},
		{join("a", long), fmt.Sprintf(` mortise: bad key: with part 2, %q, the key has more than 512 bytes`, long[:64])},
		{join(long[:512]), long[:512] + " <nil>"},
		{join(long[:510], "a"), long[:510] + "/a <nil>"},
		{join(long[:510], "ab"), ` mortise: bad key: with part 2, "ab", the key has more than 512 bytes`},
		{prefix(), " <nil>"},
		{prefix("a", "b/"), "a/b%2F/ <nil>"},
		{split("a/b%2F"), "a|b/ <nil>"},
		{split("a/b%2"), ` mortise: bad key: part 2 of "a/b%2" was not made by keys.Join`},
		{split("a%zz/b"), ` mortise: bad key: part 1 of "a%zz/b" was not made by keys.Join`},
		{split("%2F"), "/ <nil>"},
		{split("a%"), ` mortise: bad key: part 1 of "a%" was not made by keys.Join`},
		{split("a/"), ` mortise: bad key: "a/" was not made by keys.Join`},
		{split("a%41"), ` mortise: bad key: "a%41" was not made by keys.Join`},
		{split(""), ` mortise: bad key: "" was not made by keys.Join`},
	} {
		result, err := row.do()
		if got := fmt.Sprint(result, " ", err); got != row.want {
			t.Errorf("%.100q, want %.100q", got, row.want)
		}
	}
}
