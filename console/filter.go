package console

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/plain"
)

// filter selects keys for the list of the page. The zero value selects all keys.
type filter struct {
	prefix string        // of the key
	holder string        // part of the name of a holder, in any case of letters
	age    time.Duration // of the oldest hold, at least
	Wrong  string        // why ?age= was ignored; "" if it was not
}

const maxHolder = 128 // longest name of an instance, in bytes

func filterOf(query url.Values) (f filter) {
	if prefix := query.Get("prefix"); plausible(prefix) {
		f.prefix = prefix
	}
	if f.holder = strings.TrimSpace(query.Get("holder")); len(f.holder) > maxHolder {
		f.holder = ""
	}
	f.age, f.Wrong = ageOf(strings.TrimSpace(query.Get("age")))
	return f
}

// ageOf reads an age such as 90, 90s, 5m or 1h30m. A number without a unit is in seconds.
func ageOf(text string) (age time.Duration, wrong string) {
	if text == "" {
		return 0, ""
	}
	if _, err := strconv.ParseUint(text, 10, 32); err == nil {
		text += "s"
	}
	age, err := time.ParseDuration(text)
	if err != nil || age < 0 {
		return 0, fmt.Sprintf("The age %q is ignored: write, for example, 30s, 5m or 2h.", clip(plain.Text(text), briefly))
	}
	return age, ""
}

// narrows reports whether the filter needs more than the beginning of the key.
func (f filter) narrows() bool { return f.holder != "" || f.age > 0 }

func (f filter) any() bool { return f.prefix != "" || f.narrows() || f.Wrong != "" }

// those returns the keys that the filter selects, apart from its prefix. The function heldFor
// returns the age of the oldest hold of a key.
func (f filter) those(keys []mortise.KeyInfo, heldFor func(mortise.KeyInfo) time.Duration) []mortise.KeyInfo {
	if !f.narrows() {
		return keys
	}
	return slices.DeleteFunc(slices.Clone(keys), func(k mortise.KeyInfo) bool {
		return heldFor(k) < f.age || !heldBy(k, f.holder)
	})
}

// heldBy reports whether the name of a holder contains a text. The queue of a listed key has its
// first requests only.
func heldBy(k mortise.KeyInfo, text string) bool {
	return slices.ContainsFunc(k.Queue, func(st mortise.Standing) bool {
		return st.Token != 0 && strings.Contains(strings.ToLower(st.Holder), strings.ToLower(text))
	})
}

// Text describes the filter in words, as the end of "Keys ...".
func (f filter) Text() string {
	var parts []string
	if f.prefix != "" {
		parts = append(parts, "that begin with “"+clip(plain.Text(f.prefix), briefly)+"”")
	}
	if f.holder != "" {
		parts = append(parts, "held by “"+clip(plain.Text(f.holder), briefly)+"”")
	}
	if f.age > 0 {
		parts = append(parts, "held for at least "+span(f.age))
	}
	return strings.Join(parts, ", ")
}

// plausible reports whether text can be a key or the beginning of a key. Other texts in the address
// of a page are not sent to the leader.
func plausible(text string) bool { return text != "" && len(text) <= 512 && utf8.ValidString(text) }
