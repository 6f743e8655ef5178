package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/console"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/guest"
	"github.com/mortise-lock/mortise/internal/memnet"
	"github.com/mortise-lock/mortise/internal/outside"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// wrongSetting is one wrong setting of one of three instances, n1 to n3 at 10.0.0.1 to 10.0.0.3.
type wrongSetting struct {
	issue string // the complaint that the row answers
	field string
	at    int // number of the instance, from 0
	set   func(r *wrongRig, c *mortise.Config)
	// named matches the text that names the culprit, in each view of another instance.
	named string
	// own matches the text at the instance itself; "" means named.
	own string
	// works is set if the group is founded in spite of it.
	works bool
}

const firstName, secondName, thirdName = `"n1" \(10\.0\.0\.1:7947\)`, `"n2" \(10\.0\.0\.2:7947\)`,
	`"n3" \(10\.0\.0\.3:7947\)`

// wrongSettings is the list. A row that is added here is tried alone and together with each other
// row.
func wrongSettings() []wrongSetting {
	equal := func(name, field string) string {
		return name + ` has another ` + field + ` \(.* than .*: make them equal on all`
	}
	return []wrongSetting{
		{issue: "two founders of one name among three Founders", field: "Name", at: 1,
			set: func(_ *wrongRig, c *mortise.Config) { c.Name = "n1" },
			named: `the instances at 10\.0\.0\.[12]:7947 and 10\.0\.0\.[12]:7947 are both called "n1": give each ` +
				`instance a [Nn]ame of its own; no instance is called "n2"`},
		{issue: "a wrong Advertise", field: "Advertise", at: 1,
			set: func(_ *wrongRig, c *mortise.Config) { c.Advertise = "127.0.0.1:9" },
			named: `"n[12]" calls itself 127\.0\.0\.1:9, where nothing listens: correct its Advertise ` +
				`\(it answers at 10\.0\.0\.2:7947\)`},
		{issue: "one misspelt founder", field: "Name", at: 2, set: func(_ *wrongRig, c *mortise.Config) { c.Name = "n33" },
			named: `missing founders: .*"n33" \(10\.0\.0\.3:7947\).* not (one of|among) the Founders: if .*correct its Name`},
		{issue: "one misspelt name in Founders", field: "Founders", at: 0,
			set:   func(_ *wrongRig, c *mortise.Config) { c.Founders = []string{"n1", "n2", "m3"} },
			named: equal(firstName, "Founders")},
		{issue: "a wrong secret", field: "Secret", at: 2, set: func(_ *wrongRig, c *mortise.Config) {
			c.Secret = "another secret of the same length, that no other one has 0123"
		}, named: `(cluster or another program listens at|the instance at|give) .*10\.0\.0\.3:7947 (\(the other side has ` +
			`another secret|the same secret)`,
			own: `correct the secret and Cluster of this instance`},
		{issue: "another cluster's label", field: "Cluster", at: 2,
			set: func(_ *wrongRig, c *mortise.Config) { c.Cluster = "elsewhere" },
			named: `(cluster or another program listens at|give) .*10\.0\.0\.3:7947 (\(the other side .*Config\.Cluster|` +
				`the same secret .*and Cluster)`,
			own: `correct the secret and Cluster of this instance`},
		{issue: "settings of one instance differ", field: "SessionTTL", at: 1,
			set:   func(_ *wrongRig, c *mortise.Config) { c.SessionTTL, c.Grace = time.Second, 2*time.Second },
			named: equal(secondName, "SessionTTL")},
		{issue: "settings of one instance differ", field: "Grace", at: 2,
			set: func(_ *wrongRig, c *mortise.Config) { c.Grace = time.Minute }, named: equal(thirdName, "Grace")},
		{issue: "settings of one instance differ", field: "Voters", at: 0,
			set: func(_ *wrongRig, c *mortise.Config) { c.Voters = 1 }, named: equal(firstName, "Voters")},
		{issue: "an instance does not run", field: "start", at: 2,
			set:   func(r *wrongRig, _ *mortise.Config) { r.stopped = true },
			named: `(nothing listens at|start the instance at) 10\.0\.0\.3:7947`},
		{issue: "Config.JoinFunc, which Join names", field: "JoinFunc", at: 1,
			set: func(_ *wrongRig, c *mortise.Config) {
				c.JoinFunc = func(context.Context) ([]string, error) { return nil, errors.New("no such region") }
			}, named: `"n2".*(Config\.JoinFunc|its function that names the instances) fails: no such region: correct it`,
			own: `Config\.JoinFunc fails: no such region`},
		{issue: "a typo in one of three Join entries founds the group silently", field: "Join", at: 1,
			set:   func(_ *wrongRig, c *mortise.Config) { c.Join[2] = "n3.exmaple:7947" },
			named: `n3\.exmaple:7947 has no addresses yet; correct the name in Join, or create its records`, works: true},
	}
}

// wrongRig has three instances, some of which have wrong settings.
type wrongRig struct {
	t       *testing.T
	net     *memnet.Network
	nodes   [3]*mortise.Node
	logs    [3]*lockedLines
	wrong   []wrongSetting
	dirs    [3]string // Config.Dir of each instance
	stopped bool      // set by the row of an instance that does not run
}

type lockedLines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lockedLines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lockedLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func newWrongRig(t *testing.T, list ...wrongSetting) *wrongRig {
	r := &wrongRig{t: t, net: memnet.New(), wrong: list}
	t.Cleanup(func() {
		for i := range r.nodes {
			r.stop(i)
		}
	})
	for i := range r.nodes {
		r.start(i)
	}
	return r
}

func wrongHost(i int) string { return fmt.Sprintf("10.0.0.%d", i+1) }

func (r *wrongRig) start(i int) {
	r.logs[i] = &lockedLines{}
	c := mortise.Config{
		Name: fmt.Sprintf("n%d", i+1), Bind: wrongHost(i) + ":7947", Founders: []string{"n1", "n2", "n3"},
		SessionTTL: 2 * time.Second, Secret: "a secret of this test with more than enough bits 0123456789abcdef",
		Logger: slog.New(slog.NewTextHandler(r.logs[i], nil)),
	}
	for j := range r.nodes {
		c.Join = append(c.Join, wrongHost(j)+":7947")
	}
	c.Dir, r.stopped = r.dirs[i], false
	for _, w := range r.wrong {
		if w.at == i {
			w.set(r, &c)
		}
	}
	if r.stopped {
		return
	}
	ctx := outside.In(r.t.Context(), outside.World{
		Listen: r.net.Listen, Dial: r.net.Dialer(wrongHost(i)), Clock: clock.Monotonic(), Resolve: resolveIP,
	})
	var err error
	if r.nodes[i], err = mortise.Start(ctx, c); err != nil {
		r.t.Fatal(err)
	}
}

func resolveIP(_ context.Context, host string) ([]string, error) {
	if net.ParseIP(host) == nil {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return []string{host}, nil
}

func (r *wrongRig) stop(i int) {
	if r.nodes[i] != nil {
		_ = r.nodes[i].Close()
		r.nodes[i] = nil
	}
}

// correct does what a step says. A step that names a setting which is right blames the innocent.
func (r *wrongRig) correct(i int, fields ...string) {
	r.t.Helper()
	at := slices.IndexFunc(r.wrong, func(w wrongSetting) bool { return w.at == i && slices.Contains(fields, w.field) })
	if at < 0 {
		r.t.Fatalf("the step is to correct %v of n%d, which is right; wrong are %v\n%s", fields, i+1, r.wrongs(), r.all())
	}
	r.wrong = slices.Delete(slices.Clone(r.wrong), at, at+1)
	r.stop(i)
	r.start(i)
}

func (r *wrongRig) wrongs() (list []string) {
	for _, w := range r.wrong {
		list = append(list, fmt.Sprintf("%s of n%d", w.field, w.at+1))
	}
	return list
}

// wrongSteps carries out the steps that doctor prints. It has nothing but their text.
var wrongSteps = []struct {
	says string
	do   func(r *wrongRig, m []string)
}{
	{`are both called "n1": give each instance a [Nn]ame of its own; no instance is called .*"n2"`,
		func(r *wrongRig, _ []string) { r.correct(1, "Name") }},
	{`calls itself \S+, .*: correct its Advertise \(it answers at 10\.0\.0\.(\d):7947\)`,
		func(r *wrongRig, m []string) { r.correct(wrongNumber(m[1]), "Advertise") }},
	{`\(10\.0\.0\.(\d):7947\) has another (\w+) \(.* than .*: make them equal on all`,
		func(r *wrongRig, m []string) { r.correct(wrongNumber(m[1]), m[2]) }},
	{`"n33" \(10\.0\.0\.(\d):7947\).* not (?:one of|among) the Founders: if .*correct its Name`,
		func(r *wrongRig, m []string) { r.correct(wrongNumber(m[1]), "Name") }},
	{`^give .*10\.0\.0\.(\d):7947 the same secret \(or certificates\) and Cluster as the others`,
		func(r *wrongRig, m []string) { r.correct(wrongNumber(m[1]), "Secret", "Cluster") }},
	{`^start the instance at .*10\.0\.0\.(\d):7947, or correct`,
		func(r *wrongRig, m []string) { r.correct(wrongNumber(m[1]), "start") }},
	{`^"n(\d)".* waits: its function that names the instances fails: .*: correct it`,
		func(r *wrongRig, m []string) { r.correct(wrongNumber(m[1]), "JoinFunc") }},
	{`if one of n33 at 10\.0\.0\.(\d):7947 should be n3, restart it under this [Nn]ame`,
		func(r *wrongRig, m []string) { r.correct(wrongNumber(m[1]), "Name") }},
	{`^correct Join of n(\d)`, func(r *wrongRig, m []string) { r.correct(wrongNumber(m[1]), "Join") }},
}

func wrongNumber(digit string) int { return int(digit[0] - '1') }

// settle lets time pass, as an operator does who has changed something.
func (r *wrongRig) settle() { time.Sleep(15 * time.Second) }

// doctor returns what mortise doctor says, with the right configuration.
func (r *wrongRig) doctor() *diagnosis {
	f := facts{}
	for i, n := range r.nodes {
		report := guest.Report{Addr: wrongHost(i) + ":7947", From: "Join"}
		other := slices.ContainsFunc(r.wrong, func(w wrongSetting) bool {
			return w.at == i && (w.field == "Secret" || w.field == "Cluster")
		})
		switch {
		case n == nil:
			report.Outcome, report.Err = guest.Refused, errors.New("connection refused")
		case other:
			report.Outcome, report.Err = guest.Foreign, errors.New("the other side has another secret")
		default:
			s := n.Status()
			f.health, s.Health = cmp.Or(s.Health, f.health), nil
			report.Outcome, report.Status = guest.Answered, &s
			report.Answer = &query.HereAnswer{Founders: []string{"n1", "n2", "n3"}}
		}
		f.reports = append(f.reports, report)
	}
	return diagnose(f)
}

// views returns what instance i says: Status, the error of Ready, the log and the page.
func (r *wrongRig) views(i int) map[string]string {
	n := r.nodes[i]
	s := n.Status()
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Second)
	defer cancel()
	ready := ""
	if err := n.Ready(ctx); err != nil {
		ready = err.Error()
	}
	w := httptest.NewRecorder()
	ask := httptest.NewRequest(http.MethodGet, "http://localhost/status.json", nil)
	console.New(n, console.Options{}).ServeHTTP(w, ask)
	var page struct {
		Findings []struct{ What, Why, Next string }
	}
	if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil {
		r.t.Fatalf("%v: %s", err, w.Body)
	}
	seen := ""
	for _, f := range page.Findings {
		seen += f.What + " " + f.Why + " Next: " + f.Next + "\n"
		if f.Next == "" {
			r.t.Errorf("the page of n%d has no step: %s", i+1, f.What)
		}
	}
	return map[string]string{"Status": s.Waiting + s.Unresolved, "Ready": ready, "the page": seen,
		"the log": strings.ReplaceAll(r.logs[i].String(), `\"`, `"`)}
}

func (r *wrongRig) all() (text string) {
	for i, n := range r.nodes {
		if n != nil {
			text += fmt.Sprintf("n%d says %s\n", i+1, n.Status().Waiting+n.Status().Unresolved)
		}
	}
	d := r.doctor()
	return text + "doctor says " + d.Problem + "\n" + strings.Join(d.Why, "\n") + "\nsteps\n" + strings.Join(d.Steps, "\n")
}

// follow carries out what doctor prints until it prints "well", and fails if a step is not one of
// wrongSteps, blames a setting that is right, or does not help.
func (r *wrongRig) follow() {
	r.t.Helper()
	for range len(r.wrong) + 1 {
		r.settle()
		d := r.doctor()
		if d.Well {
			if len(r.wrong) > 0 {
				r.t.Fatalf("doctor says well, and wrong are %v", r.wrongs())
			}
			return
		}
		if len(d.Steps) == 0 {
			r.t.Fatalf("a trouble without a step:\n%s", r.all())
		}
		known := false
		for _, s := range wrongSteps {
			if m := regexp.MustCompile(s.says).FindStringSubmatch(d.Steps[0]); m != nil && !known {
				known = true
				s.do(r, m)
			}
		}
		if !known {
			r.t.Fatalf("the first step cannot be carried out; wrong are %v\n%s", r.wrongs(), r.all())
		}
	}
	r.t.Fatalf("the steps have not ended the trouble; wrong are %v\n%s", r.wrongs(), r.all())
}

// Each wrong setting alone: each view of each instance names the culprit, and the printed step ends
// the trouble.
func TestEachWrongSettingIsNamedEverywhere(t *testing.T) {
	for _, w := range wrongSettings() {
		t.Run(w.issue+", "+w.field, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newWrongRig(t, w)
				r.settle()
				for i, n := range r.nodes {
					if n == nil || w.works && i != w.at {
						continue
					}
					want := w.named
					if i == w.at {
						want = cmp.Or(w.own, want)
					}
					for view, text := range r.views(i) {
						if w.works && view == "Ready" {
							if text != "" {
								t.Errorf("n%d is not ready: %s", i+1, text)
							}
							continue
						}
						if !regexp.MustCompile("(?i)" + want).MatchString(text) {
							t.Errorf("%s of n%d says\n%s\nwant in it\n%s", view, i+1, text, want)
						}
					}
				}
				d := r.doctor()
				if text := d.Problem + "\n" + strings.Join(append(d.Steps, d.Why...), "\n"); d.Well ||
					!regexp.MustCompile(w.named).MatchString(text) {
					t.Errorf("doctor says %s\n%s\nwant in it\n%s", d.Problem, text, w.named)
				}
				r.follow()
			})
		})
	}
}

// The grace is a phase: it is one line of the log, and no trouble for doctor.
func TestTheGraceIsAPhase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newWrongRig(t, wrongSetting{at: 0, set: func(_ *wrongRig, c *mortise.Config) { c.Grace = time.Minute }},
			wrongSetting{at: 1, set: func(_ *wrongRig, c *mortise.Config) { c.Grace = time.Minute }},
			wrongSetting{at: 2, set: func(_ *wrongRig, c *mortise.Config) { c.Grace = time.Minute }})
		r.settle()
		d := r.doctor()
		if !d.Well || !regexp.MustCompile(`^n\d leads group \w+, which is in its grace: it is new, and grants locks in `+
			`about \d+s$`).MatchString(d.Problem) || !strings.HasPrefix(d.Steps[0], "wait for about ") {
			t.Errorf("doctor says well: %v, %s, %v", d.Well, d.Problem, d.Steps)
		}
		const line = `the group is new and in its grace: it grants locks from the given time on, because until then a ` +
			`holder of an earlier group may rely on its lock" from=(\S+) in=`
		var granted []time.Time
		for i := range r.nodes {
			views := r.views(i)
			said := regexp.MustCompile(line).FindAllStringSubmatch(views["the log"], -1)
			if len(said) != 1 || !strings.Contains(views["the page"], "new and in its grace") {
				t.Fatalf("the log of n%d says\n%s\nthe page says\n%s", i+1, views["the log"], views["the page"])
			}
			from, err := time.Parse(time.RFC3339, said[0][1])
			if err != nil {
				t.Fatal(err)
			}
			if wait := r.nodes[i].Status().GraceFor; (time.Until(from) - wait).Abs() > time.Second {
				t.Errorf("n%d: the log says that locks are granted from %v on, and Status in %v", i+1, from, wait)
			}
			granted = append(granted, from)
		}
		for i, from := range granted {
			ctx, cancel := context.WithDeadline(t.Context(), from.Add(time.Second))
			if err := r.nodes[i].Ready(ctx); err != nil || time.Until(from) > time.Second {
				t.Errorf("n%d is ready at %v (%v), and its log says %v", i+1, time.Now(), err, from)
			}
			cancel()
		}
		if d := r.doctor(); !d.Well || strings.Contains(d.Problem, "grace") {
			t.Errorf("after it doctor says %s", d.Problem)
		}
	})
}

// In a group that runs, a founder is restarted under a misspelt name. Doctor, Health and the page
// name it with the same step, instead of a founder that must be started.
func TestARenamedFounderOfARunningGroupIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newWrongRig(t)
		r.settle()
		if d := r.doctor(); !d.Well {
			t.Fatal(r.all())
		}
		r.wrong = []wrongSetting{{field: "Name", at: 2, set: func(_ *wrongRig, c *mortise.Config) { c.Name = "n33" }}}
		r.stop(2)
		r.start(2)
		r.settle()
		d := r.doctor()
		if text := d.Problem + "\n" + strings.Join(d.Why, "\n"); !strings.Contains(text, "the founder n3 does not "+
			"answer, and n33 at 10.0.0.3:7947 runs and is not one of the Founders, so it cannot vote") {
			t.Errorf("doctor says\n%s", text)
		}
		const step = "if one of n33 at 10.0.0.3:7947 should be n3, restart it under this Name, and otherwise start n3 again"
		if len(d.Steps) != 1 || !strings.EqualFold(d.Steps[0], step) {
			t.Errorf("the steps are\n%s", strings.Join(d.Steps, "\n"))
		}
		for i, n := range r.nodes {
			health, err := n.Health(t.Context())
			if err != nil || health.Advice != step {
				t.Errorf("n%d advises %s, %v", i+1, health.Advice, err)
			}
			if n.Status().Leading {
				if page := r.views(i)["the page"]; !strings.Contains(strings.ToLower(page), strings.ToLower(step)) {
					t.Errorf("the page of n%d says\n%s", i+1, page)
				}
			}
		}
		r.follow()
	})
}

// Two of three voters lost their directories, and answer as newborns. The one that kept its own
// says so, with the step, and the step ends the trouble.
func TestAFounderThatKeptItsDirectoryNamesTheOthers(t *testing.T) {
	roots := [5]string{}
	for i := range roots {
		roots[i] = t.TempDir()
	}
	synctest.Test(t, func(t *testing.T) {
		r := &wrongRig{t: t, net: memnet.New(), dirs: [3]string(roots[:3])}
		t.Cleanup(func() {
			for i := range r.nodes {
				r.stop(i)
			}
		})
		for i := range r.nodes {
			r.start(i)
		}
		r.settle()
		group := r.nodes[0].Status().Group
		for i := range r.nodes {
			r.stop(i)
		}
		r.dirs[1], r.dirs[2] = roots[3], roots[4]
		for i := range r.nodes {
			r.start(i)
		}
		r.settle()
		const two = `"n[23]" \(10\.0\.0\.[23]:7947\), "n[23]" \(10\.0\.0\.[23]:7947\) `
		const want = two + `run without this group's log, from a new directory: stop them and start them with their old ` +
			`directory; if that is lost for good, give the group up with Recover on this instance`
		for view, text := range r.views(0) {
			if !regexp.MustCompile("(?i)"+want).MatchString(text) || strings.Contains(text, "cannot be reached") {
				t.Errorf("%s of n1 says\n%s\nwant in it\n%s", view, text, want)
			}
		}
		if said := r.nodes[1].Status().Waiting; !strings.Contains(said, `"n1" (10.0.0.1:7947) keeps in its directory group `+
			group) {
			t.Errorf("n2 says %s", said)
		}
		if err := r.nodes[0].Recover(t.Context(), group); err != nil { // the last step that the text names
			t.Fatal(err)
		}
		r.settle()
		if d := r.doctor(); !d.Well {
			t.Errorf("after the step:\n%s", r.all())
		}
	})
}

// All pairs of wrong settings: doctor blames no setting that is right, and its steps, carried out
// one after the other, end the trouble. A running instance names one of the two culprits.
func TestPairsOfWrongSettingsAreNamed(t *testing.T) {
	all := wrongSettings()
	for i, a := range all {
		for _, b := range all[i+1:] {
			if a.at == b.at && a.field == b.field {
				continue
			}
			t.Run(fmt.Sprintf("%s of n%d, %s of n%d", a.field, a.at+1, b.field, b.at+1), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { newWrongRig(t, a, b).follow() })
			})
		}
	}
}
