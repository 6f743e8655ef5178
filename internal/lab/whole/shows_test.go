package whole

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/timeline"
)

// shows collects what the page of a run shows. Each run collects it, so that a run is the same with
// and without a page; maps are avoided, because they draw from the seed.
type shows struct {
	line  timeline.Recorder
	ended []time.Duration // by the number of the tape; zero while its process runs
	parts []Part
	at    time.Duration // of the first bug
}

const network = "network"

func lane(i int) string { return fmt.Sprintf("node-%d", i) }

// cuts are the kinds of faults that cut links.
var cuts = []string{"cut", "deaf", "dumb"}

func (s *shows) fault(at time.Duration, lane, text string, d time.Duration, lasts bool) {
	s.line.Mark(timeline.Fault, at, lane, "", "%s", text)
	first, _, _ := strings.Cut(text, " ")
	switch {
	case !lasts:
	case slices.Contains(cuts, first):
		s.line.Span(timeline.Cut, at, at+d, lane, text)
	case strings.Contains(text, "disk"):
		s.line.Span(timeline.Paused, at, at+d, lane, text)
	}
}

// log shows a line of a node's log.
func (s *shows) log(at time.Duration, text string) {
	i := strings.LastIndex(text, " of=")
	if i < 0 || strings.Contains(text, `msg="raft: `) || strings.Contains(text, "msg=gossip ") {
		return
	}
	of, _, _ := strings.Cut(text[i+len(" of="):], " ")
	lane := "node-" + of
	switch {
	case strings.Contains(text, "this replica is now the leader"):
		for other := range maxNodes {
			s.line.End(timeline.Leads, at, fmt.Sprintf("node-%d", other), "")
		}
		s.line.Begin(timeline.Leads, at, lane, "leads")
	case strings.Contains(text, "could not be sent"):
		s.line.Mark(timeline.Lost, at, lane, "", "%s", text)
	default:
		s.line.Mark(timeline.Event, at, lane, "", "%s", text)
	}
}

const maxNodes = 5

// has reports whether the run has this part, and notes it. It is called once for each part.
func (r *run) has(p Part, text string) bool {
	p.Text, p.At = text, r.elapsed()
	if r.only != nil && !slices.Contains(r.only, p.Name()) {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shows.parts = append(r.shows.parts, p)
	return true
}

func (r *run) elapsed() time.Duration { return time.Since(r.began) }

// reduce takes from the plan what the run goes without, and returns the parts that stay.
func (p *plan) reduce(only []string) (stay []Part) {
	has := func(some Part) bool {
		if only != nil && !slices.Contains(only, some.Name()) {
			return false
		}
		stay = append(stay, some)
		return true
	}
	late := fmt.Sprintf("%.1f %% of the writes arrive %v later", 100*p.loss, p.pause)
	if p.loss > 0 && !has(Part{Kind: Loss, Text: late}) {
		p.loss, p.pause = 0, 0
	}
	for i, name := range []string{"mutexes", "operations of channels", "atomics"} {
		text := fmt.Sprintf("at one of %d %s another goroutine runs first", p.yields[i], name)
		if p.yields[i] > 0 && !has(Part{Kind: Yields, N: i, Text: text}) {
			p.yields[i] = 0
		}
	}
	return stay
}

// chosenParts returns the names of the parts that a run has, and the refusals among them. Both are
// nil if the run has all.
func chosenParts(text string) (only []string, _ *choice, err error) {
	if text == "" {
		return nil, nil, nil
	}
	c := new(choice)
	only = strings.Split(text, ",")
	for _, name := range only {
		kind, number, _ := strings.Cut(name, " ")
		n, err := strconv.Atoi(number)
		switch {
		case name == nothing:
		case err != nil || n < 0:
			return nil, nil, fmt.Errorf("MORTISE_ONLY: %q is no kind and number of a part", name)
		case PartKind(kind) == Refusals && n < len(c.kinds):
			c.kinds[n] = true
		case PartKind(kind) == Refusal && n < len(c.times):
			c.times[n] = true
		}
	}
	return only, c, nil
}

var places = [...]string{
	refusedFrame:    "a link does not queue a frame of a client",
	refusedRaft:     "a link drops a message of raft",
	refusedProposal: "a log does not queue a batch",
	refusedStep:     "a log drops a message of raft",
	refusedInput:    "a client drops replies",
	refusedCommands: "a keeper drops a frame of a client",
	refusedReplies:  "a link does not queue a frame of a keeper",
	refusedMessages: "a link does not queue a frame with messages of raft",
}

// refusals notes the refusals of the run that the seed has drawn.
func (r *run) refusals(all []refusal) {
	var times [len(places)]int
	for n, f := range all {
		if f.happened == 0 {
			continue
		}
		at := time.Unix(0, f.at).Sub(r.began)
		times[f.kind]++
		r.shows.line.Mark(timeline.Lost, at, network, "", "refusal %d: %s", n, places[f.kind])
		r.shows.parts = append(r.shows.parts, Part{Kind: Refusal, N: n, Of: int(f.kind), Text: places[f.kind], At: at})
	}
	for kind, n := range times {
		if n > 0 {
			text := fmt.Sprintf("%s, %d times", places[kind], n)
			r.shows.parts = append(r.shows.parts, Part{Kind: Refusals, N: kind, Text: text})
		}
	}
}

// report returns what is known of the run after its end.
func (r *run) report(bugs []string) *Report {
	if refused != nil {
		r.refusals(refused())
	}
	out := &Report{Bugs: bugs, TTL: r.ttl, Plan: r.plan.String(), Parts: r.shows.parts}
	end := r.elapsed()
	ended := map[int]time.Duration{}
	for i, at := range r.shows.ended {
		if at > 0 {
			ended[i+1] = at
		}
	}
	keys, holds := timeline.Holds(r.events, ended, time.Duration(r.began.UnixNano()), end)
	line := &r.shows.line
	out.Page = timeline.Page{At: r.shows.at, To: end, Lanes: keys}
	for _, b := range line.Bars(end) {
		if (b.Kind == timeline.Held || b.Kind == timeline.Shared) && !slices.Contains(out.Page.Lanes, b.Lane) {
			out.Page.Lanes = append(out.Page.Lanes, b.Lane)
		}
	}
	slices.Sort(out.Page.Lanes)
	out.Page.Lanes = append(out.Page.Lanes, network)
	for i := range r.plan.nodes {
		out.Page.Lanes = append(out.Page.Lanes, lane(i))
	}
	out.Page.Bars = append(holds, line.Bars(end)...)
	out.Page.Marks = line.Marks()
	return out
}

func (r *Report) write(name string) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return os.WriteFile(name, text, 0o600)
}
