package console

import (
	"cmp"
	"slices"
	"time"

	"github.com/mortise-lock/mortise"
)

// How much is shown.
const (
	maxShown = 200 // keys in the list of all
	maxTop   = 6   // longest held, most waited for
	maxQueue = 100 // of the queue of one key
	maxLease = 12  // sessions
)

// view is what the page shows and what /status.json contains. Fields may be added; times are RFC
// 3339.
type view struct {
	At    time.Time `json:"at"`    // by this instance's clock
	Level level     `json:"level"` // the worst of the findings
	// Locks and sessions are as they were seen earlier, since no leader answers now.
	Stale    bool      `json:"stale,omitempty"`
	Findings []finding `json:"findings"`

	Instance instance `json:"instance"`
	Group    group    `json:"group"`
	Zones    []zone   `json:"zones"`   // the voters, and a page of the members
	Members  roster   `json:"members"` // describes that page

	Locks   locks    `json:"locks"`
	Longest []key    `json:"longest_held"`
	Waited  []key    `json:"most_waited_for"`
	Circles [][]link `json:"circles"` // of holders that may wait for each other
	Ends    []ending `json:"abnormal_ends"`
	Leases  []lease  `json:"sessions"` // those that end first
	Others  int      `json:"sessions_left_out,omitempty"`
	Search  *locks   `json:"search,omitempty"`
	Key     *key     `json:"key,omitempty"` // with its whole queue
	KeyErr  string   `json:"key_error,omitempty"`

	forest  []tree
	without int // keys with waiters that the picture leaves out
}

// instance is the one that answers.
type instance struct {
	Name    string               `json:"name"`
	ID      string               `json:"id"`
	Address string               `json:"address"`
	Phase   mortise.Phase        `json:"phase"`
	Session mortise.SessionPhase `json:"session"`
	Lease   mortise.LeaseState   `json:"lease"`
	Left    float64              `json:"lease_seconds"`
	Held    int                  `json:"held"`
	Waiters int                  `json:"waiters"`
	Waiting string               `json:"waiting_for,omitempty"`
	Err     string               `json:"error,omitempty"`
}

type lease struct {
	Session string  `json:"session"`
	Holder  string  `json:"holder"`
	Own     bool    `json:"own,omitempty"` // not the instance's first
	TTL     float64 `json:"ttl_seconds"`
	Left    float64 `json:"left_seconds"` // 0 means that the leader does not know
	Leaving bool    `json:"leaving,omitempty"`
	Expired bool    `json:"expired,omitempty"`
}

type group struct {
	ID         string   `json:"id"`
	Leader     string   `json:"leader"`
	Leading    bool     `json:"leading"` // the instance that answers leads
	Term       uint64   `json:"term,omitempty"`
	Voters     int      `json:"voters"`
	Target     int      `json:"voters_wanted,omitempty"`
	CannotLose []string `json:"cannot_lose,omitempty"`
	Change     string   `json:"change,omitempty"`
	Advice     string   `json:"next_safe_step,omitempty"`
}

type locks struct {
	Prefix string    `json:"prefix,omitempty"`
	Seen   time.Time `json:"seen,omitzero"` // when they were seen; zero means never
	Keys   []key     `json:"keys"`
	Looked int       `json:"looked_at"`                    // how many keys were looked at
	Ticks  int       `json:"tick_keys_left_out,omitempty"` // that package tick holds for itself
	More   bool      `json:"more"`                         // there are more keys, which were not looked at
	Err    string    `json:"error,omitempty"`
}

type key struct {
	Name    string     `json:"key"`
	Held    int        `json:"held"`
	Waiting int        `json:"waiting"`
	For     float64    `json:"held_seconds"`      // of the oldest hold; 0 means not held
	Long    bool       `json:"long"`              // longer than Options.Long, not by design, and requests wait
	Purpose string     `json:"purpose,omitempty"` // label mortise.purpose of the first holder or waiter
	Data    []byte     `json:"data,omitempty"`    // only if the key was asked for
	Rev     uint64     `json:"data_revision,string,omitempty"`
	Queue   []standing `json:"queue"`
	Cut     int        `json:"queue_left_out,omitempty"`
}

type standing struct {
	Holder  string        `json:"holder"`
	Session string        `json:"session"`
	Value   string        `json:"value,omitempty"`
	Token   mortise.Token `json:"token,omitempty"` // absent if it waits
	For     float64       `json:"held_seconds,omitempty"`
	Left    float64       `json:"left_seconds,omitempty"`
	Expired bool          `json:"expired,omitempty"`
	// The session of the instance that has the holder's name now; then this hold belongs to an earlier
	// incarnation.
	Later   string   `json:"later_session,omitempty"`
	Shared  bool     `json:"shared,omitempty"`
	Permits int      `json:"permits,omitempty"`
	Of      int      `json:"of,omitempty"`
	Keys    []string `json:"keys,omitempty"`
}

// scene is everything that a view is made of.
type scene struct {
	now    time.Time
	long   time.Duration
	status mortise.Status
	all    *look
	found  *look // nil if there is no search
	prefix string
	one    *look // nil if no single key was asked for
	others *look // nil for the first page of the members
	after  string

	sessions map[string]mortise.SessionInfo // by ID; nil until it is needed
	newest   map[string]uint64              // session of each name
}

// view makes the view. It makes no call.
func (s *scene) view() *view {
	v := &view{At: s.now, Stale: s.stale(), Instance: instanceOf(s.status), Group: groupOf(s.status, s.health())}
	var page []mortise.Member
	v.Members, page = s.roster()
	v.Zones = zonesOf(s.status, s.health(), page)
	v.Locks = s.locks(s.all, "", maxShown)
	v.Longest, v.Waited = s.tops()
	v.Ends = endsOf(s.all.ends)
	v.Leases, v.Others = leasesOf(s.all.sessions)
	if v.Stale { // the time that a session had left then has passed
		for i := range v.Leases {
			v.Leases[i].Left = 0
		}
	}
	v.forest, v.without = s.waits()
	v.Circles = circlesOf(v.forest)
	if s.found != nil {
		found := s.locks(s.found, s.prefix, maxFound)
		v.Search = &found
	}
	if s.one != nil {
		if s.one.err != nil {
			v.KeyErr = s.one.err.Error()
		}
		if len(s.one.keys) > 0 {
			one := s.key(s.one.keys[0], maxQueue)
			one.Data = s.one.keys[0].Data
			v.Key = &one
		}
	}
	v.Findings = s.findings(v)
	for _, f := range v.Findings {
		v.Level = max(v.Level, f.Level)
	}
	return v
}

// leasesOf returns the sessions that have used up most of their time.
func leasesOf(all []mortise.SessionInfo) (leases []lease, others int) {
	all = slices.Clone(all)
	part := func(s mortise.SessionInfo) float64 { return s.Left.Seconds() / max(s.TTL.Seconds(), 1e-9) }
	slices.SortStableFunc(all, func(a, b mortise.SessionInfo) int { return cmp.Compare(part(a), part(b)) })
	leases = []lease{}
	for _, s := range all[:min(len(all), maxLease)] {
		leases = append(leases, lease{
			Session: s.Session, Holder: s.Holder, Own: s.Own, TTL: inSeconds(s.TTL), Left: inSeconds(s.Left),
			Leaving: s.Leaving, Expired: s.Expired,
		})
	}
	return leases, len(all) - len(leases)
}

func instanceOf(s mortise.Status) instance {
	i := instance{
		Name: s.Name, ID: s.Instance, Address: s.Address, Phase: s.Phase, Session: s.Session, Lease: s.Lease,
		Left: inSeconds(s.LeaseFor), Held: s.Held,
		Waiters: s.Waiters, Waiting: s.Waiting,
	}
	if s.Err != nil {
		i.Err = s.Err.Error()
	}
	return i
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

// locks converts an answer to a list of keys.
func (s *scene) locks(l *look, prefix string, most int) locks {
	all := locks{Prefix: prefix, Seen: l.seen, Looked: len(l.keys), More: l.more, Keys: []key{}}
	for _, k := range l.keys {
		switch {
		case prefix == "" && ofTick(k):
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
			Expired: st.Expired, Shared: st.Shared,
			Permits: st.Permits, Of: st.Of, Keys: st.Keys,
		}
		if st.Token != 0 {
			shown.For = inSeconds(s.age(st))
		}
		if shown.Later, _ = s.later(st); s.stale() {
			shown.Left = 0 // that time has passed
		}
		one.Queue = append(one.Queue, shown)
	}
	one.Cut = k.Held + k.Waiting - len(one.Queue)
	return one
}

// age returns the age of a hold, by the clock of this instance. If the leader has not confirmed the
// hold since, it is the age at the last confirmation.
func (s *scene) age(st mortise.Standing) time.Duration {
	now := s.now
	if s.stale() && !s.all.seen.IsZero() {
		now = s.all.seen
	}
	return now.Sub(st.Since)
}

// heldFor returns the age of the oldest hold of a key, or 0 if it is not held.
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

// tops returns the keys that are longest held, and those with the most waiters.
func (s *scene) tops() (longest, waited []key) {
	longest, waited = []key{}, []key{}
	all := slices.DeleteFunc(slices.Clone(s.all.keys), lasts) // such keys need no attention
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
