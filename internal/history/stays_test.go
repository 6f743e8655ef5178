package history_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/internal/lab/historytest"
	"github.com/mortise-lock/mortise/lockfsm"
)

func TestStaysHaveEverything(t *testing.T) {
	seen := map[string]int{}
	last := map[lockfsm.Token]lockfsm.Token{}
	pass := func(token lockfsm.Token) bool {
		for first, last := range last {
			if first < token && token <= last {
				return true
			}
		}
		return false
	}
	events := historytest.Make(stays(1, 5000))
	for _, e := range events {
		if e.Kind == history.Grant && e.Last != 0 {
			last[e.Token] = e.Last
			if e.Seq == 0 {
				seen["stay at the beginning of an account"]++
			}
		}
	}
	lost := map[int]map[uint64]bool{}
	for _, e := range events {
		switch {
		case e.Kind == history.Return && pass(e.Token):
			seen["pass "+e.Outcome.String()]++
			if lost[e.Stream] == nil {
				lost[e.Stream] = map[uint64]bool{}
			}
			lost[e.Stream][e.Op] = e.Outcome == history.Granted
		case e.Kind == history.Return && e.Outcome == history.Granted:
			seen["ordinary lock"]++
		case e.Kind == history.Lost && lost[e.Stream][e.Op]:
			seen["pass lost"]++
		case e.Kind == history.End && last[e.Token] != 0:
			seen["stay ended by "+e.How.String()]++
		}
	}
	for _, what := range []string{"pass granted", "pass held", "ordinary lock", "pass lost", "stay ended by release",
		"stay ended by expire", "stay at the beginning of an account"} {
		if seen[what] == 0 {
			t.Errorf("the test history has none of %q: %v", what, seen)
		}
	}
	if seen["pass granted"] < len(last)+300 {
		t.Errorf("only %d passes of %d stays", seen["pass granted"], len(last))
	}
}

func TestStaysInAllKindsOfHistories(t *testing.T) {
	for seed := range uint64(12) {
		o := kinds(seed, 300)
		o.Sticky = 0.5
		events := historytest.Make(o)
		if err := history.Judge(events, history.Options{Settled: true}); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		end := events[len(events)-1].At
		for at := events[0].At; at < end; at += 20_000_000 {
			left := without(events, func(e history.Event) bool { return e.At > at })
			var v *history.Violation
			if err := history.Judge(left, history.Options{Settle: 30 * time.Millisecond}); errors.As(err, &v) {
				t.Fatalf("seed %d, cut at %d: %v", seed, at, err)
			}
		}
		if err := history.Judge(historytest.Follow(events, historytest.Make(stays(seed, 100)), 1),
			history.Options{Settled: true}); err != nil {
			t.Fatalf("seed %d, two groups: %v", seed, err)
		}
	}
}

// The stay of these histories has token 10 and reserves the tokens up to 14.
const (
	voter = `{"k":"history","at":0,"v":1,"node":"voter"}
{"k":"begin","at":0,"group":"1","index":1,"rev":"1"}
{"k":"grant","at":100,"group":"1","index":5,"seq":1,"rev":"14","key":"k","token":"10","last":"14"` + place + `}
`
	place    = `,"place":"9","session":"4","number":1`
	released = `{"k":"end","at":500,"group":"1","index":7,"seq":1,"rev":"20","key":"k","token":"10"` + place +
		`,"how":"release"}
`
	evicted = `{"k":"end","at":160,"group":"1","index":7,"seq":1,"rev":"20","key":"k","token":"10"` + place +
		`,"how":"force"}
`
	marked = `{"k":"mark","at":9000,"group":"1","index":9,"rev":"40"}
`
	secondGroup = `{"k":"begin","at":200,"group":"2","index":1,"rev":"1000"}
{"k":"grant","at":310,"group":"2","index":5,"seq":1,"rev":"1003","key":"k","token":"1003"` + secondPlace + `}
{"k":"end","at":320,"group":"2","index":6,"seq":1,"rev":"1004","key":"k","token":"1003"` + secondPlace +
		`,"how":"expire"}
`
	secondPlace = `,"place":"1002","session":"1001","number":1`
	node        = `{"k":"history","at":0,"v":1,"node":"node"}
`
	other = `{"k":"history","at":0,"v":1,"node":"other"}
`
	passes = `{"k":"call","at":50,"op":1,"key":"k"}
{"k":"return","at":110,"op":1,"out":"granted","token":"11"}
{"k":"call","at":120,"op":2,"key":"k"}
{"k":"unlock","at":150,"op":1}
{"k":"unlocked","at":155,"op":1}
{"k":"return","at":160,"op":2,"out":"granted","token":"12"}
{"k":"unlock","at":300,"op":2}
{"k":"unlocked","at":300,"op":2}
`
)

// unreserved continues a history with a stay that has reserved no tokens. The log has its end after
// the grant to a call that began after the unlock was confirmed.
const unreserved = `{"k":"grant","at":210,"group":"1","index":6,"seq":1,"rev":"18","key":"l","token":"18"` + place + `}
` + released + `{"k":"end","at":600,"group":"1","index":8,"seq":1,"rev":"21","key":"l","token":"18"` + place +
	`,"how":"release"}
` + node + `{"k":"call","at":50,"op":1,"key":"k"}
{"k":"return","at":110,"op":1,"out":"granted","token":"10"}
{"k":"unlock","at":150,"op":1}
{"k":"unlocked","at":155,"op":1}
{"k":"call","at":200,"op":2,"key":"l"}
{"k":"return","at":220,"op":2,"out":"granted","token":"18"}
{"k":"unlock","at":300,"op":2}
`

// held is a try that another holder made fail.
func held(token string, begun, returned string) string {
	return `{"k":"call","at":` + begun + `,"op":1,"key":"k","try":true}
{"k":"return","at":` + returned + `,"op":1,"out":"held","token":"` + token + `"}
`
}

func TestStaysByHand(t *testing.T) {
	replace := func(text string, pairs ...string) string {
		for i := 0; i < len(pairs); i += 2 {
			if strings.Count(text, pairs[i]) != 1 {
				t.Fatalf("%q is not once in %s", pairs[i], text)
			}
		}
		return strings.NewReplacer(pairs...).Replace(text)
	}
	passesAtOnce := replace(passes, `"at":150`, `"at":161`, `"at":155`, `"at":161`)
	shared := func(text string) string { return strings.ReplaceAll(text, `"key":"k"`, `"key":"k","permits":1`) }
	for _, c := range []struct {
		name string
		text string
		want history.Rule
	}{
		{"two passes", voter + released + node + passes, ""},
		{"a stay without a pass", voter + released + node + `{"k":"call","at":50,"op":1,"key":"k"}
{"k":"return","at":80,"op":1,"out":"failed","err":"context"}
`, ""},
		{"the last token", voter + released + node + replace(passes, `"12"`, `"14"`), ""},
		{"held by the first pass", voter + released + node + passes + other + held("11", "100", "150"), ""},
		{"held until the unlock returns", voter + released + node + passes + other + held("11", "153", "170"), ""},
		{"held by the stay", voter + released + node + passes + other + held("10", "450", "470"), ""},
		{"held by a pass of a call that failed", voter + released + node + passes + other + held("13", "301", "400"), ""},
		{"a lost pass is followed by another", voter + released + node +
			replace(passes, `{"k":"unlock","at":150,"op":1}`, `{"k":"lost","at":158,"op":1,"until":140}`,
				`"unlocked","at":155,"op":1`, `"unlocked","at":158,"op":1,"err":"lost"`), ""},
		{"a pass ends after the end by force", voter + evicted + node + passes, ""},
		{"no token was reserved", replace(voter, `"last":"14"`, `"last":"10"`) + unreserved, ""},
		{"shared passes at once", shared(voter + released + node + passesAtOnce), ""},

		{"an unlock is confirmed too early", replace(voter, `,"last":"14"`, "") + unreserved, history.Real},
		{"a shared pass ends too late", shared(voter + replace(released, `500`, `290`) + node + passesAtOnce),
			history.Belief},
		{"a shared pass begins too early", shared(voter + released + node +
			replace(passesAtOnce, `"12"`, `"11"`, `"11"`, `"12"`, `"at":110`, `"at":115`)), history.Real},
		{"the token of the stay", voter + released + node + replace(passes, `"11"`, `"10"`), history.Phantom},
		{"a token above the last", voter + released + node + replace(passes, `"12"`, `"15"`), history.Phantom},
		{"a token without last", replace(voter, `"last":"14",`, "") + released + node + passes, history.Phantom},
		{"another key", voter + released + node + replace(passes, `2,"key":"k"`, `2,"key":"l"`), history.Phantom},
		{"another kind", voter + released + node + replace(passes, `2,"key":"k"`, `2,"key":"k","permits":1`),
			history.Phantom},
		{"another instance", voter + released + node + passes + other +
			replace(held("13", "301", "400"), `"held"`, `"granted"`, `,"try":true`, ""), history.Phantom},
		{"the same token", voter + released + node + replace(passes, `"12"`, `"11"`), history.Tokens},
		{"the order of the tokens", voter + released + node + replace(passes, `"11"`, `"12"`, `"12"`, `"11"`),
			history.Belief},
		{"the next call begins too late", voter + released + node +
			replace(passes, `"11"`, `"12"`, `"12"`, `"11"`, `{"k":"unlock","at":300,"op":2}
{"k":"unlocked","at":300,"op":2}
`, ""), history.Real},
		{"two passes at once", voter + released + node + passesAtOnce, history.Belief},
		{"a pass after the end", voter + replace(released, `500`, `290`) + node + passes, history.Belief},
		{"a pass begins after the end", voter + replace(released, `500`, `115`) + node +
			replace(passes, `"at":150`, `"at":112`, `"at":155`, `"at":112`, `{"k":"unlock","at":300,"op":2}
{"k":"unlocked","at":300,"op":2}
`, ""), history.Real},
		{"held after the pass", voter + released + node + passes + other + held("11", "158", "170"), history.Real},
		{"held after the next pass", voter + released + node +
			replace(passes, `{"k":"unlocked","at":155,"op":1}
`, "") + other + held("11", "165", "170"), history.Real},
		{"held before the pass", voter + released + node + passes + other + held("12", "100", "119"), history.Real},
		{"held while the pass before it lasted", voter + released + node + passes + other + held("12", "100", "149"),
			history.Real},
		{"held after the end of the stay", voter + released + node + passes + other + held("13", "501", "510"),
			history.Real},
		{"the state keeps the stay", voter + node + passes, history.Kept},
		{"an untold caller", voter + released + marked + replace(node+passes, `{"k":"unlock","at":300,"op":2}
{"k":"unlocked","at":300,"op":2}
`, `{"k":"call","at":9000,"op":3,"key":"l"}
`), history.Zombie},
		{"an untold caller of an earlier pass", voter + released + marked +
			replace(node+passes, `{"k":"unlock","at":150,"op":1}
{"k":"unlocked","at":155,"op":1}
`, "") + `{"k":"call","at":9000,"op":3,"key":"l"}
`, history.Zombie},
		{"the next group grants after the last pass", voter + secondGroup + node + passes, ""},
		{"the next group grants under a pass", voter + replace(secondGroup, `310`, `250`) + node + passes, history.Belief},
		{"a later voter with another last", voter + released + node + passes + `{"k":"history","at":0,"v":1,"node":"late"}
{"k":"begin","at":200,"group":"1","index":6,"rev":"14"}
{"k":"grant","at":200,"group":"1","index":6,"rev":"14","key":"k","token":"10","last":"15"` + place + `}
`, history.Agree},
		{"a reserved token is granted", voter + replace(released, `"20"`, `"12"`) +
			`{"k":"grant","at":600,"group":"1","index":8,"seq":1,"rev":"40","key":"l","token":"13","place":"12",` +
			`"session":"4","number":2}
` + node + passes, history.Tokens},
	} {
		events, err := history.Read(nil, strings.NewReader(c.text))
		if err != nil {
			t.Fatal(err)
		}
		var v *history.Violation
		err = history.Judge(events, history.Options{Settled: true, Settle: time.Microsecond})
		if c.want == "" && err != nil || c.want != "" && (!errors.As(err, &v) || v.Rule != c.want) {
			t.Errorf("%s: want %q, got %v", c.name, c.want, err)
		}
	}
}

// TestIdleStays checks that a stay without a pass may last while the recording goes on. A pass must
// end when the next one begins.
func TestIdleStays(t *testing.T) {
	later := `{"k":"call","at":9000,"op":3,"key":"l"}
`
	untold := strings.Replace(passes, `{"k":"unlock","at":150,"op":1}
{"k":"unlocked","at":155,"op":1}
`, "", 1)
	for text, want := range map[string]history.Rule{passes: "", untold: history.Zombie} {
		events, err := history.Read(nil, strings.NewReader(voter+marked+node+text+later))
		if err != nil {
			t.Fatal(err)
		}
		var v *history.Violation
		err = history.Judge(events, history.Options{Settle: time.Microsecond})
		if want == "" && err != nil || want != "" && (!errors.As(err, &v) || v.Rule != want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

func TestMissingFileOfAStay(t *testing.T) {
	events, err := history.Read(nil, strings.NewReader(voter+released+other+held("11", "200", "300")))
	if err != nil {
		t.Fatal(err)
	}
	if err := history.Judge(events, history.Options{}); !errors.Is(err, history.ErrUnknown) {
		t.Error(err)
	}
}
