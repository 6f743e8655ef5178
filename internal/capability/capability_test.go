package capability

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

const cron = "mortise-capability/1\nfor cron-host\nuntil 2027-01-01T00:00:00Z\nlock cron/*\nread cron/*\n"

func build(t testing.TB, words ...string) *Capability {
	t.Helper()
	c, err := Build("x", time.Time{}, words...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestBuildAndParseAgree(t *testing.T) {
	until := time.Date(2027, 1, 1, 1, 0, 0, 999, time.FixedZone("", 3600))
	c, err := Build("cron-host", until, "read cron/*", "lock cron/*", " read  cron/*", "read cron/*")
	if err != nil || c.Text() != cron {
		t.Fatalf("%q, %v", c.Text(), err)
	}
	p, err := Parse(cron)
	if err != nil || p.Hash() != c.Hash() || p.For() != "cron-host" ||
		!p.Until().Equal(until.Truncate(time.Second)) || p.Member() {
		t.Errorf("%+v, %v", p, err)
	}
	odd, err := Build("a b%ü", time.Time{}, "lock ü*", "write %2A%", "force a b")
	if err == nil {
		t.Errorf("a percent sign alone was accepted: %q", odd.Text())
	}
	odd, err = Build("a b%ü", time.Time{}, "lock ü*", "write %2a%25", "force a b", "read *")
	const want = "mortise-capability/1\nfor a%20b%25%C3%BC\nforce a%20b\nlock %C3%BC*\nread *\nwrite %2A%25\n"
	if err != nil || odd.Text() != want || odd.For() != "a b%ü" {
		t.Fatalf("%q, %v", odd.Text(), err)
	}
	if !odd.Allows(Write, "*%") || !odd.Allows(Lock, "übung") || !odd.Ends("a b") || odd.Ends("a bc") ||
		!odd.AllowsPrefix(Read, "") {
		t.Error("patterns are not decoded")
	}
}

// Sessions are compared by the hash of the text, so a set of rights must have only one text.
func TestWhatIsNotCanonicalIsRefused(t *testing.T) {
	for text, want := range map[string]error{
		"":                                      ErrVersion,
		"mortise-capability/1":                  ErrVersion,
		"mortise-capability/2\nfor x\nread *\n": ErrVersion,
		"mortise-capability/1\r\nfor x\r\nread *\r\n":                            ErrVersion,
		"mortise-capability/1\n":                                                 ErrName,
		"mortise-capability/1\nread *\n":                                         ErrName,
		"mortise-capability/1\nfor \nread *\n":                                   ErrName,
		"mortise-capability/1\nfor a b\nread *\n":                                ErrName,
		"mortise-capability/1\nfor a%0Ab\nread *\n":                              ErrName,
		"mortise-capability/1\nfor a%FF\nread *\n":                               ErrName,
		"mortise-capability/1\nfor a%E2%80%AE\nread *\n":                         ErrName,
		"mortise-capability/1\nfor " + strings.Repeat("a", 129) + "\nread *\n":   ErrName,
		"mortise-capability/1\nfor x\n":                                          ErrNoRight,
		"mortise-capability/1\nfor x\nread *":                                    ErrVersion,
		"mortise-capability/1\nfor x\n\nread *\n":                                ErrRight,
		"mortise-capability/1\nfor x\nread *\n\n":                                ErrOrder,
		"mortise-capability/1\nfor x\nread *\nlock *\n":                          ErrOrder,
		"mortise-capability/1\nfor x\nread *\nread *\n":                          ErrOrder,
		"mortise-capability/1\nfor x\nlock a\nuntil 2027-01-01T00:00:00Z\n":      ErrRight,
		"mortise-capability/1\nfor x\nuntil 2027-01-01T01:00:00+01:00\nread *\n": ErrUntil,
		"mortise-capability/1\nfor x\nuntil 2027-01-01T00:00:00.5Z\nread *\n":    ErrUntil,
		"mortise-capability/1\nfor x\nuntil 1969-01-01T00:00:00Z\nread *\n":      ErrUntil,
		"mortise-capability/1\nfor x\nuntil never\nread *\n":                     ErrUntil,
		"mortise-capability/1\nfor x\nfor y\nread *\n":                           ErrRight,
		"mortise-capability/1\nfor x\nadmin\n":                                   ErrRight,
		"mortise-capability/1\nfor x\nread\n":                                    ErrRight,
		"mortise-capability/1\nfor x\nread \n":                                   ErrRight,
		"mortise-capability/1\nfor x\nREAD a\n":                                  ErrRight,
		"mortise-capability/1\nfor x\nmember x\n":                                ErrRight,
		"mortise-capability/1\nfor x\nread  a\n":                                 ErrPattern,
		"mortise-capability/1\nfor x\nread a*b\n":                                ErrPattern,
		"mortise-capability/1\nfor x\nread a**\n":                                ErrPattern,
		"mortise-capability/1\nfor x\nread a%2a\n":                               ErrPattern,
		"mortise-capability/1\nfor x\nread a%62\n":                               ErrPattern,
		"mortise-capability/1\nfor x\nread a%2\n":                                ErrPattern,
		"mortise-capability/1\nfor x\nread a%\n":                                 ErrPattern,
		"mortise-capability/1\nfor x\nread ü\n":                                  ErrPattern,
		"mortise-capability/1\nfor x\nlock *\nmember\n":                          ErrRedundant,
		"mortise-capability/1\nfor x\n" + strings.Repeat("read a\n", 63):         ErrSize,
		"mortise-capability/1\nfor x\nread " + strings.Repeat("a", 4096) + "\n":  ErrSize,
	} {
		if c, err := Parse(text); c != nil || !errors.Is(err, want) || !errors.Is(err, ErrNotCanonical) {
			t.Errorf("%q: %v, want %v", text, err, want)
		}
	}
	if _, err := Parse(cron); err != nil {
		t.Error(err)
	}
}

func TestExactKeysAndPrefixes(t *testing.T) {
	c := build(t, "lock cron", "lock jobs/*", "read cron", "force jobs/a")
	for _, q := range []struct {
		verb Verb
		key  string
		want bool
	}{
		{Lock, "cron", true}, {Lock, "cron-x", false}, {Lock, "cron/", false}, {Lock, "cro", false}, {Lock, "", false},
		{Lock, "jobs/", true}, {Lock, "jobs/a/b", true}, {Lock, "jobs", false}, {Read, "jobs/a", false},
		{Write, "cron", false}, {0, "cron", false}, {9, "cron", false},
	} {
		if got := c.Allows(q.verb, q.key); got != q.want {
			t.Errorf("%s %q: %v", q.verb, q.key, got)
		}
	}
	for prefix, want := range map[string]bool{"jobs/": true, "jobs/a": true, "jobs": false, "": false, "cron": false} {
		if got := c.AllowsPrefix(Lock, prefix); got != want {
			t.Errorf("listing %q: %v", prefix, got)
		}
	}
	if c.Ends("jobs/a") || !build(t, "force a*", "read a").Ends("a") || build(t, "force a*", "read a").Ends("ab") {
		t.Error("ending a hold must need force and read")
	}
	if !c.Sees("jobs/x") || !c.Sees("cron") || c.Sees("other") || !build(t, "write d").Sees("d") ||
		build(t, "force d").Sees("d") {
		t.Error("read, write and lock show a key, force alone does not")
	}
}

func TestMemberAndNil(t *testing.T) {
	m := build(t, "member")
	if !m.Member() || !m.Allows(Lock, "x") || !m.AllowsPrefix(Read, "") || !m.Allows(Write, "y") ||
		m.Allows(Force, "x") || m.AllowsPrefix(Force, "") || m.Allows(0, "x") {
		t.Error("a member reads, writes and locks all, and ends nothing by force")
	}
	if f := build(t, "member", "force jobs/*"); !f.Ends("jobs/1") || f.Ends("other") {
		t.Error("force beside member")
	}
	if _, err := Build("x", time.Time{}, "member", "read a"); !errors.Is(err, ErrRedundant) {
		t.Error(err)
	}
	var full *Capability
	if !full.Allows(Force, "x") || !full.AllowsPrefix(Force, "") || !full.Ends("x") || !full.Sees("x") ||
		full.Member() || full.Text() != "" || full.For() != "" || full.Hash() != [32]byte{} ||
		!full.Until().IsZero() || full.String() == "" {
		t.Error("nil must be a full instance")
	}
}

func TestBuildRefusesWords(t *testing.T) {
	for word, want := range map[string]error{"": ErrRight, "lock": ErrRight, "lock ": ErrRight, "take a": ErrRight,
		"lock a*b": ErrPattern, "lock a%zz": ErrPattern, "admin": ErrRight} {
		if _, err := Build("x", time.Time{}, word); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", word, err, want)
		}
	}
	for _, name := range []string{"", "a\nb", "\xff", strings.Repeat("n", 129)} {
		if _, err := Build(name, time.Time{}, "read *"); !errors.Is(err, ErrName) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := Build("x", time.Time{}); !errors.Is(err, ErrNoRight) {
		t.Error(err)
	}
	if _, err := Build("x", time.Date(1969, 1, 1, 0, 0, 0, 0, time.UTC), "read *"); !errors.Is(err, ErrUntil) {
		t.Error(err)
	}
	if _, err := Build("x", time.Date(12000, 1, 1, 0, 0, 0, 0, time.UTC), "read *"); !errors.Is(err, ErrUntil) {
		t.Error(err)
	}
}

func TestForNames(t *testing.T) {
	short, err := For("laptop.example", "  read *\n\nlock a*\n")
	if err != nil || short.Text() != "mortise-capability/1\nfor laptop.example\nlock a*\nread *\n" {
		t.Errorf("%v, %v", short, err)
	}
	if long, err := For("other", cron); err != nil || long.For() != "cron-host" {
		t.Errorf("%v, %v", long, err)
	}
	if _, err := For("x", cron+" "); err == nil {
		t.Error("a text that is not canonical was accepted")
	}
}

func FuzzParse(f *testing.F) {
	f.Add(cron, "lock cron/*", "cron/a")
	f.Add("mortise-capability/1\nfor x\nforce a%2A*\nmember\n", "member", "")
	f.Add("mortise-capability/1\nfor %C3%BC\nread *\n", "read %00*", "\x00")
	f.Fuzz(func(t *testing.T, text, word, key string) {
		if c, err := Parse(text); err == nil {
			var words []string
			for _, line := range strings.Split(strings.TrimSpace(text), "\n")[2:] {
				if !strings.HasPrefix(line, "until ") {
					words = append(words, line)
				}
			}
			again, err := Build(c.For(), c.Until(), words...)
			if err != nil || again.Text() != text || c.Text() != text || again.Hash() != c.Hash() {
				t.Fatalf("%q is built again as %q (%v)", text, again.Text(), err)
			}
			if c.AllowsPrefix(Lock, key) && !c.Allows(Lock, key+"x") {
				t.Fatalf("%q grants the prefix %q and not a key in it", text, key)
			}
		}
		if c, err := Build("x", time.Time{}, word); err == nil {
			p, err := Parse(c.Text())
			if err != nil || p.Hash() != c.Hash() || p.Allows(Lock, key) != c.Allows(Lock, key) ||
				p.Sees(key) != c.Sees(key) {
				t.Fatalf("%q became %q, which is read as %v, %v", word, c.Text(), p, err)
			}
		}
	})
}

func TestTiers(t *testing.T) {
	for want, c := range map[Tier]*Capability{Root: nil, Member: build(t, "member", "force *"),
		Guest: build(t, "lock *", "read *", "write *", "force *")} {
		if got := TierOf(c); got != want {
			t.Errorf("%v is %s, want %s", c, got, want)
		}
	}
	if _, ok := (Peer{}).Allowed(); ok {
		t.Error("a peer that has proved nothing has rights")
	}
	if c, ok := (Peer{Tier: Root}).Allowed(); !ok || c != nil {
		t.Error("a full instance may not do everything")
	}
	if Tier(0).String() != "none" || Root.String() != "root" || Member.String() != "member" ||
		Guest.String() != "guest" {
		t.Error("the words for the tiers")
	}
}

// TestPatternsAreAUnion compares the checks with a comparison of the key with each pattern.
func TestPatternsAreAUnion(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		b := make([]byte, r.IntN(5))
		for i := range b {
			b[i] = "\x00 *%ab\xff"[r.IntN(7)]
		}
		return string(b)
	}
	matched := 0
	for range 4000 {
		var all []right
		for range r.IntN(8) {
			all = append(all, right{Read + Verb(r.IntN(4)), text(), r.IntN(2) == 0})
		}
		c := &Capability{rights: patternsOf(slices.Clone(all))}
		for range 10 {
			verb, key := Verb(r.IntN(6)), text()
			match := func(right right) bool {
				return right.verb == verb && (right.key == key || right.prefix && strings.HasPrefix(key, right.key))
			}
			cover := func(right right) bool {
				return right.verb == verb && right.prefix && strings.HasPrefix(key, right.key)
			}
			want := slices.ContainsFunc(all, match)
			if got := c.Allows(verb, key); got != want {
				t.Fatalf("%v: %s on %q: %v", all, verb, key, got)
			}
			if got, want := c.AllowsPrefix(verb, key), slices.ContainsFunc(all, cover); got != want {
				t.Fatalf("%v: %s on all below %q: %v", all, verb, key, got)
			}
			if want {
				matched++
			}
		}
	}
	if matched < 1000 {
		t.Errorf("only %d keys matched", matched)
	}
}

// BenchmarkAllows checks the keys of the largest request against the largest capability.
func BenchmarkAllows(b *testing.B) {
	var words []string
	for i := range MaxLines - 2 {
		words = append(words, fmt.Sprintf("lock %s/%02d/*", strings.Repeat("d", 40), i))
	}
	c, err := Build("x", time.Time{}, words...)
	if err != nil {
		b.Fatal(err)
	}
	keys := make([]string, 256)
	for i := range keys {
		keys[i] = fmt.Sprintf("%s/%02d/%03d", strings.Repeat("d", 40), i%(MaxLines-2), i)
	}
	for b.Loop() {
		for _, key := range keys {
			if !c.Allows(Lock, key) {
				b.Fatal(key)
			}
		}
	}
}
