package console

import (
	"cmp"
	"slices"
	"time"

	"github.com/mortise-lock/mortise"
)

// The maximum number of items that the page shows.
const (
	maxShown = 200
	maxTop   = 6
	maxQueue = 100
)

// view is the data of the page and of /status.json. Later versions may add fields. Times are in the
// format of RFC 3339.
type view struct {
	At    time.Time `json:"at"`    // by the clock of this instance
	Level level     `json:"level"` // the worst of the findings
	// Stale means that no leader answers now, so the data about locks and sessions may be outdated.
	Stale    bool      `json:"stale,omitempty"`
	Findings []finding `json:"findings"`

	Cluster  string   `json:"cluster"` // Config.Cluster
	Instance instance `json:"instance"`
	Past     *past    `json:"last_hour,omitempty"` // nil without Options.History
	Group    group    `json:"group"`
	Zones    []zone   `json:"zones"`   // the voters and a page of the members
	Members  roster   `json:"members"` // describes the page of members in Zones

	Locks   locks    `json:"locks"`
	Longest []key    `json:"longest_held"`
	Waited  []key    `json:"most_waited_for"`
	Circles [][]link `json:"circles"` // holders that may wait for each other
	Ends    []ending `json:"abnormal_ends"`
	Leases  []lease  `json:"sessions"` // the sessions with the smallest part of their TTL left
	Others  int      `json:"sessions_left_out,omitempty"`
	Search  *locks   `json:"search,omitempty"`
	Key     *key     `json:"key,omitempty"` // the requested key with its whole queue, or nil
	KeyErr  string   `json:"key_error,omitempty"`

	Once once `json:"-"`

	forest  []tree
	without int // number of keys with waiters that the picture leaves out
}

type group struct {
	ID         string   `json:"id"`
	Leader     string   `json:"leader"`
	Leading    bool     `json:"leading"` // the instance that answers is the leader
	Term       uint64   `json:"term,omitempty"`
	Voters     int      `json:"voters"`
	Target     int      `json:"voters_wanted,omitempty"`
	CannotLose []string `json:"cannot_lose,omitempty"`
	Change     string   `json:"change,omitempty"`
	Advice     string   `json:"next_safe_step,omitempty"`
}

type locks struct {
	Prefix string    `json:"prefix,omitempty"`
	Holder string    `json:"holder,omitempty"`      // part of the name of a holder
	Age    float64   `json:"age_seconds,omitempty"` // of the oldest hold, at least
	Seen   time.Time `json:"seen,omitzero"`         // when the leader returned the keys; zero means never
	Keys   []key     `json:"keys"`
	Looked int       `json:"looked_at"`                    // number of keys that were read
	Ticks  int       `json:"tick_keys_left_out,omitempty"` // number of keys requested by package tick itself
	More   bool      `json:"more"`                         // keys exist that were not read
	Err    string    `json:"error,omitempty"`
}

type key struct {
	Name    string     `json:"key"`
	Held    int        `json:"held"`
	Waiting int        `json:"waiting"`
	For     float64    `json:"held_seconds"`      // age of the oldest hold; 0 means not held
	Long    bool       `json:"long"`              // held for longer than Options.Long while others wait
	Purpose string     `json:"purpose,omitempty"` // label mortise.purpose of the first request
	Data    []byte     `json:"data,omitempty"`    // only if this key was requested
	Rev     uint64     `json:"data_revision,string,omitempty"`
	Queue   []standing `json:"queue"`
	Cut     int        `json:"queue_left_out,omitempty"`
	// Commands are calls of the command mortise about this key, for a shell; only if this key was
	// requested.
	Commands []string `json:"commands,omitempty"`
}

type standing struct {
	Holder  string        `json:"holder"`
	Session string        `json:"session"`
	Value   string        `json:"value,omitempty"`
	Token   mortise.Token `json:"token,omitempty"` // absent if the request waits
	For     float64       `json:"held_seconds,omitempty"`
	Left    float64       `json:"left_seconds,omitempty"`
	Expired bool          `json:"expired,omitempty"`
	Kept    bool          `json:"kept,omitempty"` // LockSticky; a caller may or may not hold the lock
	// Later is the newest session that was opened under the holder's name. It is empty unless this
	// hold belongs to an earlier session.
	Later string `json:"later_session,omitempty"`
	part         // of the request, for which it is in this queue; see mortise.Standing
	Also  []part `json:"also,omitempty"`

	Unsearched bool `json:"unsearched,omitempty"` // the search for a deadlock of this request goes on
}

type part struct {
	Key  string       `json:"key"`
	Mode mortise.Mode `json:"mode"`
	Tree bool         `json:"tree,omitempty"`
}

// Says returns the mode if it is not exclusive.
func (p part) Says() string {
	if p.Mode == mortise.Exclusive {
		return ""
	}
	return p.Mode.String()
}

type scene struct {
	now     time.Time
	long    time.Duration
	status  mortise.Status
	past    *past // nil without Options.History
	program string
	link    func(mortise.Member) string // Options.Console
	all     *answer
	found   *answer // nil if the viewer does not search
	filter  filter
	one     *answer
	others  *answer // nil, or the answer with a later page of the members
	after   string

	sessions map[string]mortise.SessionInfo // by ID; nil until they are needed
	newest   map[string]uint64              // the number of the newest session for each name
}

func (s *scene) view() *view {
	v := &view{At: s.now, Stale: s.stale(), Cluster: clusterOf(s.status), Instance: instanceOf(s.status, s.program),
		Past: s.past, Group: groupOf(s.status, s.health())}
	var page []mortise.Member
	v.Members, page = s.roster()
	v.Zones = zonesOf(s.status, s.health(), page)
	linkConsoles(v.Zones, append(slices.Clone(s.status.Voters), page...), s.link)
	v.Locks = s.locks(s.all, filter{}, maxShown)
	v.Longest, v.Waited = s.tops()
	v.Ends = endsOf(s.all.ends)
	v.Leases, v.Others = leasesOf(s.all.sessions)
	if v.Stale { // the last answer is outdated
		for i := range v.Leases {
			v.Leases[i].Left = 0
		}
	}
	v.forest, v.without = s.waits()
	v.Circles = circlesOf(v.forest)
	if s.found != nil {
		found := s.locks(s.found, s.filter, maxFound)
		v.Search = &found
	}
	if s.one != nil {
		if s.one.err != nil {
			v.KeyErr = s.one.err.Error()
		}
		if len(s.one.keys) > 0 {
			one := s.key(s.one.keys[0], maxQueue)
			one.Data = s.one.keys[0].Data
			if !v.Stale {
				earlier := func(st mortise.Standing) (is bool) { _, is = s.later(st); return is }
				one.Commands = commandsFor(v.Cluster, s.one.keys[0], earlier)
			}
			v.Key = &one
		}
	}
	v.Once = onceOf(v.Zones, v.Members, v.Instance.Address, v.Group.Voters, v.Group.Target)
	v.Once.merge(v.Zones, v.Leases, v.Others)
	v.Once.Tops = v.Search == nil && !v.Locks.More && v.Locks.Looked-v.Locks.Ticks <= maxTop
	v.Findings = s.findings(v)
	for _, f := range v.Findings {
		v.Level = max(v.Level, f.Level)
	}
	return v
}

func groupOf(s mortise.Status, h *mortise.Health) group {
	g := group{ID: s.Group, Leader: s.Leader, Leading: s.Leading, Term: s.Term}
	for _, v := range s.Voters {
		if v.Votes {
			g.Voters++
		}
	}
	if h != nil {
		g.Target, g.CannotLose, g.Change, g.Advice = h.Target, h.CannotLose, h.Change, h.Advice
	}
	return g
}

func (s *scene) locks(l *answer, f filter, most int) locks {
	all := locks{Prefix: f.prefix, Holder: f.holder, Age: f.age.Seconds(), Seen: l.seen, Looked: len(l.keys),
		More: l.more, Keys: []key{}}
	for _, k := range f.those(l.keys, s.heldFor) {
		switch {
		case f.prefix == "" && ofTick(k):
			all.Ticks++
		case len(all.Keys) < most:
			all.Keys = append(all.Keys, s.key(k, queueShown))
		}
	}
	if l.err != nil {
		all.Err = l.err.Error()
	}
	return all
}

func (s *scene) key(k mortise.KeyInfo, queue int) key {
	one := key{Name: k.Key, Held: k.Held, Waiting: k.Waiting, For: inSeconds(s.heldFor(k)), Rev: k.Revision,
		Queue: []standing{}}
	one.Long, one.Purpose = s.isLong(k) && !s.stale(), purposeOf(k)
	for _, st := range k.Queue[:min(len(k.Queue), queue)] {
		shown := standing{
			Holder: st.Holder, Session: st.Session, Value: st.Value, Token: st.Token, Left: inSeconds(st.Left),
			Expired: st.Expired, Kept: st.Kept, part: part(st.Part), Unsearched: st.Unsearched,
		}
		for _, p := range st.Also {
			shown.Also = append(shown.Also, part(p))
		}
		if st.Token != 0 {
			shown.For = inSeconds(s.age(st))
		}
		if shown.Later, _ = s.later(st); s.stale() {
			shown.Left = 0 // the last answer is outdated
		}
		one.Queue = append(one.Queue, shown)
	}
	one.Cut = k.Held + k.Waiting - len(one.Queue)
	return one
}

// age returns the age of a hold by the clock of this instance. If the data is stale, it returns
// the age that the hold had when the leader last returned it.
func (s *scene) age(st mortise.Standing) time.Duration {
	now := s.now
	if s.stale() && !s.all.seen.IsZero() {
		now = s.all.seen
	}
	return now.Sub(st.Since)
}

func (s *scene) heldFor(k mortise.KeyInfo) (longest time.Duration) {
	for _, st := range k.Queue {
		if st.Token != 0 {
			longest = max(longest, s.age(st))
		}
	}
	return longest
}

func (s *scene) isLong(k mortise.KeyInfo) bool {
	return k.Waiting > 0 && s.heldFor(k) >= s.long && !lasts(k)
}

func (s *scene) tops() (longest, waited []key) {
	longest, waited = []key{}, []key{}
	all := slices.DeleteFunc(slices.Clone(s.all.keys), lasts)
	slices.SortStableFunc(all, func(a, b mortise.KeyInfo) int { return cmp.Compare(s.heldFor(b), s.heldFor(a)) })
	for _, k := range all[:min(len(all), maxTop)] {
		if k.Held > 0 {
			longest = append(longest, s.key(k, queueShown))
		}
	}
	slices.SortStableFunc(all, func(a, b mortise.KeyInfo) int { return cmp.Compare(b.Waiting, a.Waiting) })
	for _, k := range all[:min(len(all), maxTop)] {
		if k.Waiting > 0 {
			waited = append(waited, s.key(k, queueShown))
		}
	}
	return longest, waited
}
