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

const firstName, secondName, thirdName = `"n1" \(10\.0\.0\.1:7947\)`, `"n2" \((?:10\.0\.0\.2:7947|127\.0\.0\.1:9)\)`,
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
			named: `the instances at (10\.0\.0\.[12]:7947|127\.0\.0\.1:9) and (10\.0\.0\.[12]:7947|127\.0\.0\.1:9) are both ` +
				`called "n1": give each instance a [Nn]ame of its own; no instance is called .*"n2"`},
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
	root    string    // of the directories
	mayFail bool      // the next Start may return an error: refused
	refused error
	// replicas is Config.Replicas; zero means Config.Founders
	replicas int
	headless [3]time.Time // when each instance was first seen without a leader, see note
	stopped  bool         // set by the row of an instance that does not run
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

// forget drops the lines that were written before a correction.
func (l *lockedLines) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Reset()
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
		Name: fmt.Sprintf("n%d", i+1), Bind: wrongHost(i) + ":7947",
		SessionTTL: 2 * time.Second, Secret: "a secret of this test with more than enough bits 0123456789abcdef",
		Logger: slog.New(slog.NewTextHandler(r.logs[i], nil)),
	}
	for j := range r.nodes {
		c.Join = append(c.Join, wrongHost(j)+":7947")
	}
	c.Replicas, c.Founders = r.replicas, r.founders()
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
	n, err := mortise.Start(ctx, c)
	if err != nil && !r.mayFail {
		r.t.Fatal(err)
	}
	r.nodes[i], r.refused, r.mayFail = n, err, false
}

func (r *wrongRig) founders() []string {
	if r.replicas > 0 {
		return nil
	}
	return []string{"n1", "n2", "n3"}
}

// note observes whether instance i has a leader. The real answer to doctor has this from the
// instance itself.
func (r *wrongRig) note(i int) {
	switch {
	case r.nodes[i] == nil, r.nodes[i].Status().Leader != "":
		r.headless[i] = time.Time{}
	case r.headless[i].IsZero():
		r.headless[i] = time.Now()
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
	at := r.wrongAt(i, fields)
	if at < 0 {
		r.t.Fatalf("the step is to correct %v of n%d, which is right; wrong are %v\n%s", fields, i+1, r.wrongs(), r.all())
	}
	r.wrong = slices.Delete(slices.Clone(r.wrong), at, at+1)
	for _, l := range r.logs {
		if l != nil {
			l.forget()
		}
	}
	r.stop(i)
	r.start(i)
}

// wrongAt returns the index of a wrong setting of instance i among the given fields, or -1.
func (r *wrongRig) wrongAt(i int, fields []string) int {
	return slices.IndexFunc(r.wrong, func(w wrongSetting) bool { return w.at == i && slices.Contains(fields, w.field) })
}

func (r *wrongRig) wrongs() (list []string) {
	for _, w := range r.wrong {
		list = append(list, fmt.Sprintf("%s of n%d", w.field, w.at+1))
	}
	return list
}

// wrongSteps are the steps of all views. Each names an instance by the digit of its address, or as
// n1 to n3, and the settings of which one is wrong. There is nothing but the text.
var wrongSteps = []struct {
	says   string
	at     string // the instance, if the text has no digit
	fields []string
}{
	{`are both called "n1": give each instance a name of its own; no instance is called .*"n2"`, "2", []string{"Name"}},
	{`calls itself \S+, [^;]*: correct its Advertise \(it answers at 10\.0\.0\.(\d):7947\)`, "", []string{"Advertise"}},
	{`\(10\.0\.0\.(\d):7947\) has another (\w+) \([^;]* than [^;]*: make them equal on all`, "", nil},
	{`"n33" \(10\.0\.0\.(\d):7947\)[^;]* not (?:one of|among) the Founders: if [^;]*correct its Name`, "",
		[]string{"Name"}},
	{`give [^;]*10\.0\.0\.(\d):7947 the same secret \(or certificates\) and Cluster as the others`, "",
		[]string{"Secret", "Cluster"}},
	{`start the instance at [^;]*10\.0\.0\.(\d):7947, or correct`, "", []string{"start"}},
	{`nothing listens at 10\.0\.0\.(\d):7947`, "", []string{"start"}},
	{`"n(\d)"[^;]*(?:Config\.JoinFunc|its function that names the instances) fails: [^;]*: correct it`, "",
		[]string{"JoinFunc"}},
	{`if one of n33 at 10\.0\.0\.(\d):7947 should be n3, restart it under this Name`, "", []string{"Name"}},
	{`correct Join of n(\d)`, "", []string{"Join"}},
}

// accusation is an instance with the settings of which a text says that one is wrong.
type accusation struct {
	at     int
	fields []string
}

func accusations(text string) (list []accusation) {
	for _, s := range wrongSteps {
		for _, m := range regexp.MustCompile("(?i)"+s.says).FindAllStringSubmatch(text, -1) {
			m = append(m, s.at)
			a := accusation{wrongNumber(m[1]), s.fields}
			if s.fields == nil {
				a.fields = []string{m[2]}
			}
			list = append(list, a)
		}
	}
	return list
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
			report.Answer = &query.HereAnswer{Founders: r.founders(), Durable: r.dirs[i] != "", Replicas: uint32(r.replicas)}
			if err := n.Err(); err != nil {
				report.Answer.Failed = err.Error()
			}
			if r.note(i); s.Leader == "" {
				report.Answer.Leaderless = int64(time.Since(r.headless[i]))
			}
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
		r.judge()
		steps := accusations(d.Steps[0])
		if len(steps) == 0 {
			r.t.Fatalf("the first step cannot be carried out; wrong are %v\n%s", r.wrongs(), r.all())
		}
		r.correct(steps[0].at, steps[0].fields...)
	}
	r.t.Fatalf("the steps have not ended the trouble; wrong are %v\n%s", r.wrongs(), r.all())
}

var differing = regexp.MustCompile(`"n(\d)" \([^)]*\) and this instance have different (\w+) \(`)

// judge checks each cell: each view of each instance names one of the culprits, and accuses no
// setting that is right. The log may have said so earlier.
func (r *wrongRig) judge() {
	r.t.Helper()
	for i, n := range r.nodes {
		if n == nil {
			continue
		}
		var want []string
		works := true
		for _, w := range r.wrong {
			if works = works && w.works; i == w.at {
				want = append(want, cmp.Or(w.own, w.named))
			} else if !w.works {
				want = append(want, w.named)
			}
		}
		for view, text := range r.views(i) {
			for _, a := range accusations(text) {
				if r.wrongAt(a.at, a.fields) < 0 {
					r.t.Errorf("%s of n%d accuses %v of n%d; wrong are %v:\n%s", view, i+1, a.fields, a.at+1, r.wrongs(), text)
				}
			}
			fits := false // two instances differ, and no third one shows which of them is wrong
			for _, m := range differing.FindAllStringSubmatch(text, -1) {
				fields := []string{m[2]}
				if fits = r.wrongAt(wrongNumber(m[1]), fields) >= 0 || r.wrongAt(i, fields) >= 0; !fits {
					r.t.Errorf("%s of n%d says that %v differs; wrong are %v:\n%s", view, i+1, fields, r.wrongs(), text)
				}
			}
			if view == "Ready" && works != (text == "") {
				r.t.Errorf("Ready of n%d: %q; wrong are %v", i+1, text, r.wrongs())
			}
			silent := fits || view == "the log" || view == "Ready" && works || len(want) == 0
			if !silent && !regexp.MustCompile("(?i)"+strings.Join(want, "|")).MatchString(text) {
				r.t.Errorf("%s of n%d names none of %v:\n%s", view, i+1, r.wrongs(), text)
			}
		}
	}
}

// Each wrong setting alone: each view of each instance names the culprit, and the printed step ends
// the trouble. At a merge every fourth setting.
func TestEachWrongSettingIsNamedEverywhere(t *testing.T) {
	for i, w := range wrongSettings() {
		if testing.Short() && i%4 > 0 {
			continue
		}
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
		r.wrong = []wrongSetting{{field: "Name", at: 2, set: func(_ *wrongRig, c *mortise.Config) { c.Name = "n33" },
			works: true}}
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

// All pairs of wrong settings: no view blames a setting that is right, each view of each instance
// names one of the two culprits, and doctor's steps, carried out one after the other, end the
// trouble. At a merge it takes every tenth pair.
func TestPairsOfWrongSettingsAreNamed(t *testing.T) {
	all, pairs := wrongSettings(), 0
	for i, a := range all {
		for _, b := range all[i+1:] {
			if a.at == b.at && a.field == b.field {
				continue
			}
			if pairs++; testing.Short() && pairs%10 != 0 {
				continue
			}
			t.Run(fmt.Sprintf("%s of n%d, %s of n%d", a.field, a.at+1, b.field, b.at+1), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { newWrongRig(t, a, b).follow() })
			})
		}
	}
}
