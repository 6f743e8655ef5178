package check_test

import (
	"cmp"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/check"
	"github.com/mortise-lock/mortise/internal/lab/mutants"
	"github.com/mortise-lock/mortise/lockfsm"
)

type leaseStep = check.LeaseStep

// A client at second s of the trace; a voter likewise. The leader's clock is the same.
func client(s float64, kind check.LeaseStepKind, more leaseStep) leaseStep {
	more.Kind, more.Client, more.Clock = kind, "n0", seconds(s)
	return more
}

func voter(s float64, kind check.LeaseStepKind, more leaseStep) leaseStep {
	more.Kind, more.Clock, more.Group, more.Voter = kind, seconds(s), 1, cmp.Or(more.Voter, "v0")
	if more.Session == 0 && kind != check.Leads {
		more.Session = 7
	}
	return more
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func named(numbers ...lockfsm.Number) (all []lockfsm.Range) {
	for _, n := range numbers {
		all = append(all, lockfsm.Range{First: n, Last: n})
	}
	return all
}

const (
	leaseTTL = 10 * time.Second
	lives    = leaseTTL - leaseTTL/50
)

// rightLeases is the life of a session with a TTL of 10 s. It sends Open twice, attaches, renews,
// gets the lock 11 with token 101 and the stay 12 with token 102, and attaches again at the leader
// of the next term. There it hears of a recall, gives the stay back, and is not renewed any more.
func rightLeases() []leaseStep {
	nonce := lockfsm.Nonce{1}
	deadline := func(s float64, sent float64) leaseStep {
		return client(s, check.Published, leaseStep{Deadline: seconds(sent) + lives})
	}
	s := leaseStep{Session: 7}
	with := func(epoch lockfsm.Epoch, seq uint64) leaseStep { return leaseStep{Session: 7, Epoch: epoch, Seq: seq} }
	return []leaseStep{
		voter(1, check.Leads, leaseStep{Term: 2}),
		client(2, check.OpenSent, leaseStep{Nonce: nonce}),
		client(3, check.OpenSent, leaseStep{Nonce: nonce}),
		voter(3.1, check.OpenApplied, leaseStep{TTL: leaseTTL}),
		client(3.2, check.OpenHeard, leaseStep{Session: 7, Nonce: nonce, TTL: leaseTTL}),
		deadline(3.2, 2),
		client(3.2, check.AttachSent, leaseStep{Session: 7, Epoch: 1}),
		client(3.2, check.RenewSent, with(1, 1)),
		voter(3.3, check.RenewCame, with(1, 1)),
		voter(3.3, check.RoundAsked, leaseStep{Seq: 1}),
		voter(3.4, check.AttachApplied, with(1, 0)),
		voter(3.4, check.AttachTold, with(1, 0)),
		voter(3.5, check.RoundConfirmed, leaseStep{Seq: 1}),
		voter(3.5, check.RenewTold, with(1, 1)),
		client(3.6, check.RenewHeard, with(1, 1)),
		deadline(3.6, 3.2),
		voter(4, check.GrantApplied, leaseStep{Number: 11}),
		voter(4, check.GrantTold, leaseStep{Number: 11, Epoch: 1}),
		client(4.1, check.StateHeard, leaseStep{Session: 7, Number: 11, Token: 101}),
		client(4.1, check.Believes, leaseStep{Token: 101}),
		voter(4.2, check.GrantApplied, leaseStep{Number: 12}),
		voter(4.2, check.GrantTold, leaseStep{Number: 12, Epoch: 1}),
		client(4.3, check.StateHeard, leaseStep{Session: 7, Number: 12, Token: 102}),
		client(4.3, check.Keeps, leaseStep{Token: 102}),
		client(4.3, check.Passes, leaseStep{Token: 102}),
		client(5, check.RenewSent, with(1, 2)),
		voter(5.1, check.RenewCame, with(1, 2)),
		voter(5.1, check.RoundAsked, leaseStep{Seq: 2}),
		voter(5.2, check.RoundConfirmed, leaseStep{Seq: 2}),
		voter(5.2, check.RenewTold, with(1, 2)),
		client(5.3, check.RenewHeard, with(1, 2)),
		deadline(5.3, 5),
		// the next leader
		voter(6, check.OpenApplied, leaseStep{Voter: "v1", TTL: leaseTTL}),
		voter(6, check.AttachApplied, leaseStep{Voter: "v1", Epoch: 1}),
		voter(6, check.Leads, leaseStep{Voter: "v1", Term: 3}),
		client(6.1, check.AttachSent, leaseStep{Session: 7, Epoch: 2, Named: named(11, 12)}),
		client(6.1, check.RenewSent, with(2, 3)),
		voter(6.2, check.RenewCame, leaseStep{Voter: "v1", Epoch: 2, Seq: 3}),
		voter(6.3, check.AttachApplied, leaseStep{Voter: "v1", Epoch: 2, Recalled: []lockfsm.Number{12}}),
		voter(6.3, check.RecallTold, leaseStep{Voter: "v1", Epoch: 2, Number: 12}),
		voter(6.3, check.AttachTold, leaseStep{Voter: "v1", Epoch: 2}),
		voter(6.3, check.RoundAsked, leaseStep{Voter: "v1", Seq: 1}),
		// The grant of 13 is told after the acknowledgement of a renewal that had come before it,
		// although a renewal of the older attachment comes late.
		voter(6.35, check.GrantApplied, leaseStep{Voter: "v1", Number: 13}),
		voter(6.36, check.RenewCame, leaseStep{Voter: "v1", Epoch: 1, Seq: 2}),
		voter(6.4, check.RoundConfirmed, leaseStep{Voter: "v1", Seq: 1}),
		voter(6.4, check.RenewTold, leaseStep{Voter: "v1", Epoch: 2, Seq: 3}),
		voter(6.4, check.GrantTold, leaseStep{Voter: "v1", Epoch: 2, Number: 13}),
		client(6.5, check.RenewHeard, with(2, 3)),
		deadline(6.5, 6.1),
		client(6.5, check.RecallHeard, leaseStep{Token: 102}),
		client(6.5, check.Passes, leaseStep{Token: 102}),
		client(6.6, check.Forgets, leaseStep{Token: 102}),
		client(6.6, check.FreeSent, leaseStep{Session: 7, Number: 12}),
		voter(6.7, check.EndApplied, leaseStep{Voter: "v1", Number: 12}),
		// silence: the lock is lost, and its lease ends
		client(16, check.Published, leaseStep{}),
		client(16, check.Forgets, leaseStep{Token: 101}),
		voter(16.35, check.OpenApplied, leaseStep{Voter: "v1", TTL: leaseTTL}), // a late copy of the first Open
		voter(16.4, check.ExpireProposed, leaseStep{Voter: "v1", Term: 3}),
		voter(16.5, check.ExpireApplied, leaseStep{Voter: "v1", Term: 3}),
		voter(17, check.Settled, s),
	}
}

type leaseSteps = []leaseStep

// leaseBug is an edit of the right trace that shows a bug, and the rule that must find it.
type leaseBug struct {
	rule check.LeaseRule
	edit func(leaseSteps) leaseSteps
}

func at(all leaseSteps, s float64, kind check.LeaseStepKind) int {
	return slices.IndexFunc(all, func(x leaseStep) bool { return x.Kind == kind && x.Clock == seconds(s) })
}

func insert(s float64, kind check.LeaseStepKind, more ...leaseStep) func(leaseSteps) leaseSteps {
	return func(all leaseSteps) leaseSteps { return slices.Insert(all, at(all, s, kind)+1, more...) }
}

func without(s float64, kind check.LeaseStepKind) func(leaseSteps) leaseSteps {
	return func(all leaseSteps) leaseSteps { i := at(all, s, kind); return slices.Delete(all, i, i+1) }
}

// plantedLeases are the bugs of the model.
func plantedLeases() map[string]leaseBug {
	change := func(s float64, kind check.LeaseStepKind, f func(*leaseStep)) func(leaseSteps) leaseSteps {
		return func(all leaseSteps) leaseSteps { f(&all[at(all, s, kind)]); return all }
	}
	until := func(at time.Duration) func(*leaseStep) { return func(s *leaseStep) { s.Deadline = at } }
	return map[string]leaseBug{
		"STALE_ACK": {check.LeadConfirmed, insert(6, check.Leads,
			voter(6.05, check.RenewCame, leaseStep{Epoch: 1, Seq: 9}),
			voter(6.05, check.RoundAsked, leaseStep{Seq: 3}),
			voter(6.05, check.RoundConfirmed, leaseStep{Seq: 3}), // its quorum is that of an old configuration
			voter(6.06, check.RenewTold, leaseStep{Epoch: 1, Seq: 9}))},
		"DEADLINE_FROM_ACK": {check.SentTime, change(5.3, check.Published, until(seconds(5.3)+lives))},
		"NO_EXTEND": {check.FullTTL, insert(6, check.Leads,
			voter(15.2, check.ExpireProposed, leaseStep{Voter: "v1", Term: 3}))},
		"ACK_WHILE_EXPIRING": {check.NotExpiring, insert(16.4, check.ExpireProposed,
			voter(16.45, check.RenewTold, leaseStep{Voter: "v1", Epoch: 2, Seq: 4}))},
		"EXPIRE_IN_LATER_TERM": {check.OwnTerm, change(16.5, check.ExpireApplied, func(s *leaseStep) { s.Term = 4 })},
		"ACK_BEFORE_APPLIED":   {check.AppliedFirst, without(6.3, check.AttachApplied)},
		"REVIVE_AFTER_LOSS": {check.LossIsFinal, insert(16, check.Published,
			client(16, check.Published, leaseStep{Deadline: seconds(6.1) + lives}),
			client(16.1, check.Believes, leaseStep{Token: 101}))},
		"SECOND_SENDING": {check.FirstSending, change(3.2, check.Published, until(seconds(3)+lives))},
		"NO_MARGIN":      {check.Margin, change(5.3, check.Published, until(seconds(5)+leaseTTL))},
		"RENEW_OLD_EPOCH": {check.NewestAttachment, func(all leaseSteps) leaseSteps {
			more := leaseSteps{voter(6.31, check.AttachApplied, leaseStep{Voter: "v1", Epoch: 3})}
			return slices.Insert(all, at(all, 6.3, check.AttachTold)+1, more...)
		}},
		"CANCEL_DROPPED": {check.CancelFrees, change(17, check.Settled, func(s *leaseStep) { s.Left = 1 })},
		"GRANT_LOST":     {check.GrantIsTold, without(4, check.GrantTold)},
		"PASS_AFTER_RELEASE": {check.ReleasedIsOver, insert(6.6, check.FreeSent,
			client(6.6, check.Passes, leaseStep{Token: 102}))},
		"FREE_NOT_NAMED": {check.NamesWhatIsKept, change(6.1, check.AttachSent,
			func(s *leaseStep) { s.Named = named(11) })},
		"RECALL_TOLD_ONCE": {check.RecallIsRepeated, without(6.3, check.RecallTold)},
		"RECALL_UNHEEDED": {check.RecallIsRespected, insert(6.5, check.Passes,
			client(6.5, check.Passes, leaseStep{Token: 102}), client(6.5, check.Passes, leaseStep{Token: 102}))},
	}
}

// leaseBugs are bugs of package mutants whose traces differ from those of the model.
func leaseBugs() map[string]leaseBug {
	next := func(kind check.LeaseStepKind, seq uint64) leaseStep {
		return voter(6.5, kind, leaseStep{Voter: "v1", Epoch: 1, Seq: seq})
	}
	return map[string]leaseBug{
		// No other voter leads, and no quorum has answered.
		"stale-ack": {check.LeadConfirmed, without(5.2, check.RoundConfirmed)},
		// A renewal that was sent with the attachment 1 extends the attachment 2.
		"older-attachment-renewed": {check.NewestAttachment, insert(6.4, check.RenewTold,
			next(check.RenewCame, 2), next(check.RoundAsked, 2), next(check.RoundConfirmed, 2),
			voter(6.6, check.RenewTold, leaseStep{Voter: "v1", Epoch: 2, Seq: 2}))},
		// The leader of term 3 has decided the expiry, and proposes it when it leads again in term 5.
		"expiry-outlives-its-term": {check.FullTTL, func(all leaseSteps) leaseSteps {
			i := at(all, 16.4, check.ExpireProposed)
			all[i].Term = 5
			return slices.Insert(all, i, voter(16.4, check.Leads, leaseStep{Term: 4}),
				voter(16.4, check.Leads, leaseStep{Voter: "v1", Term: 5}))
		}},
	}
}

func judgeLeases(steps []leaseStep) error {
	l := check.Leases{Passes: 2}
	for i := range steps {
		if err := l.Step(&steps[i]); err != nil {
			return err
		}
	}
	return nil
}

// TestLeasesRejectTheBugsOfTheModel: a right trace is accepted. For each bug of model/lease.pml an
// edit of it shows the bug, and breaks the rule that the bug violates.
func TestLeasesRejectTheBugsOfTheModel(t *testing.T) {
	if err := judgeLeases(rightLeases()); err != nil {
		t.Fatal(err)
	}
	found, bugs := map[check.LeaseRule]bool{}, plantedLeases()
	maps.Copy(bugs, leaseBugs())
	for name, bug := range bugs {
		found[bug.rule] = true
		err := judgeLeases(bug.edit(rightLeases()))
		if err == nil || !strings.Contains(err.Error(), "rule "+string(bug.rule)+" ") {
			t.Errorf("%s: want a break of %s, got: %v", name, bug.rule, err)
		}
	}
	for _, rule := range check.LeaseRules() {
		if !found[rule] {
			t.Errorf("no bug breaks the rule %s", rule)
		}
	}
	for name := range leaseBugs() {
		if !slices.ContainsFunc(mutants.All(), func(b mutants.Bug) bool { return b.Name == name }) {
			t.Errorf("%s is no planted bug", name)
		}
	}
}

// TestLeasesHaveTheRulesOfTheModel compares the names: each bug of the model has a trace here, and
// each rule that the model names is one of the checker, next to the bug that breaks it.
func TestLeasesHaveTheRulesOfTheModel(t *testing.T) {
	model, err := os.ReadFile("../../../model/lease.pml")
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile("../../../model/run.sh")
	if err != nil {
		t.Fatal(err)
	}
	names := func(b []byte, pattern string) []string {
		var all []string
		for _, m := range regexp.MustCompile(pattern).FindAllSubmatch(b, -1) {
			all = append(all, string(m[1]))
		}
		slices.Sort(all)
		return slices.Compact(all)
	}
	bugs := names(script, `caught ([A-Z_]{4,})`)
	if here := slices.Sorted(maps.Keys(plantedLeases())); !slices.Equal(bugs, here) {
		t.Errorf("model/run.sh plants %v, and the traces are for %v", bugs, here)
	}
	if marked := strings.Count(string(model), "/* BUG: "); marked != len(bugs) {
		t.Errorf("the model has %d bugs, and model/run.sh plants %d", marked, len(bugs))
	}
	var rules []string
	for _, rule := range check.LeaseRules() {
		rules = append(rules, string(rule))
	}
	slices.Sort(rules)
	if there := names(model, `breaks RULE ([a-z-]+)`); !slices.Equal(there, rules) {
		t.Errorf("the model names the rules %v, and the checker has %v", there, rules)
	}
}
