package shard

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mortise-lock/mortise"
)

// plan decides which shards this instance begins and ends. It is pure: the events of the watch and
// the time are arguments.
type plan struct {
	name  string
	count int
	me    string // the ID of this member
	first int    // the shard that it tries first, so that instances try different ones

	members map[string]member     // by key
	owners  map[int]mortise.Token // of the shards that are locked, here or elsewhere

	running map[int]bool      // begun here; true if it is to end
	again   map[int]time.Time // when a shard that failed here may begin again

	differ string // the last result of disagreement
}

func newPlan(name string, count, first int, me string) *plan {
	return &plan{
		name: name, count: count, me: me, first: first, members: map[string]member{}, owners: map[int]mortise.Token{},
		running: map[int]bool{}, again: map[int]time.Time{},
	}
}

// The keys of a set of shards: the lock of each shard, and the presence of each member.
func shardKey(name string, index int) string { return name + "/shard/" + strconv.Itoa(index) }
func memberName(name string) string          { return name + "/member" }

func memberValue(weight, count int, id string) string {
	return fmt.Sprintf("%d %d %s", weight, count, id)
}

// parseMember returns the member that a value of memberValue describes, without its token.
func parseMember(value string) (m member, ok bool) {
	_, err := fmt.Sscanf(value, "%d %d %s", &m.weight, &m.count, &m.id)
	return m, err == nil && m.weight >= 1 && m.weight <= maxWeight && m.count >= 1 && m.count <= maxCount
}

func (p *plan) apply(e *mortise.Event) {
	if e.Kind == mortise.EventReset {
		clear(p.members)
		clear(p.owners)
		return
	}
	held := e.Kind == mortise.EventHeld
	if !held && e.Kind != mortise.EventFreed && e.Kind != mortise.EventLeft {
		return
	}
	if index, is := indexOf(e.Key, p.name, p.count); is {
		if held {
			p.owners[index] = e.Token
		} else if p.owners[index] == e.Token {
			delete(p.owners, index)
		}
		return
	}
	if !strings.HasPrefix(e.Key, memberName(p.name)+"/") {
		return
	}
	if m, ok := parseMember(e.Value); held && ok {
		m.token, m.instance = e.Token, e.Holder
		p.members[e.Key] = m
	} else if p.members[e.Key].token == e.Token {
		delete(p.members, e.Key)
	}
}

// indexOf returns the shard that a key belongs to, out of count shards of a name.
func indexOf(key, name string, count int) (index int, is bool) {
	text, is := strings.CutPrefix(key, name+"/shard/")
	index, err := strconv.Atoi(text)
	return index, is && err == nil && index >= 0 && index < count
}

// next returns the shards to end and to begin now. It counts them as ending and running. If this
// member is not present, it changes nothing: its session was lost, and with it its shards, or its
// presence returns soon.
//
// If members have different counts, as during a change of the count, each range of shards that ends
// at one of the counts is divided among the members whose counts include it. So every shard of
// every count has an owner.
func (p *plan) next(now time.Time) (end, begin []int) {
	all, present := make([]member, 0, len(p.members)), false
	var counts []int
	for _, m := range p.members {
		all, counts = append(all, m), append(counts, m.count)
		present = present || m.id == p.me
	}
	if !present {
		return nil, nil
	}
	slices.Sort(counts)
	low := 0
	for _, high := range slices.Compact(counts) {
		if high > p.count {
			break
		}
		all = slices.DeleteFunc(all, func(m member) bool { return m.count < high })
		more := quotas(all, high-low)[p.me]
		e, b := p.share(now, low, high, more)
		end, begin = append(end, e...), append(begin, b...)
		low = high
	}
	return end, begin
}

// share is next for the shards from low to below high, if this member should own quota of them.
func (p *plan) share(now time.Time, low, high, quota int) (end, begin []int) {
	more := quota
	for index, ending := range p.running {
		if !ending && index >= low && index < high {
			more--
		}
	}
	for i := 0; i < high-low && more != 0; i++ {
		index := low + (p.first+i)%(high-low)
		ending, runs := p.running[index]
		switch {
		case more < 0 && runs && !ending:
			p.running[index] = true
			end = append(end, index)
			more++
		case more > 0 && !runs && p.owners[index] == 0 && !now.Before(p.again[index]):
			p.running[index] = false
			begin = append(begin, index)
			more--
		}
	}
	return end, begin
}

const maxNamed = 10 // instances that a disagreement names

// disagreement describes the members with other counts, if they are not those of the last call. It
// returns "" if nothing is to be reported.
func (p *plan) disagreement() string {
	var others []string
	for _, m := range p.members {
		if m.count != p.count {
			others = append(others, fmt.Sprintf("%d on %q", m.count, m.instance))
		}
	}
	slices.Sort(others)
	others = slices.Compact(others)
	if len(others) > maxNamed {
		others = append(others[:maxNamed], fmt.Sprintf("and %d more", len(others)-maxNamed))
	}
	text := strings.Join(others, ", ")
	if text == p.differ {
		return ""
	}
	p.differ = text
	return text
}

// ended records that a shard does not run here any more. If it failed, it may begin again at the
// given time.
func (p *plan) ended(index int, again time.Time) {
	delete(p.running, index)
	if delete(p.again, index); !again.IsZero() {
		p.again[index] = again
	}
}
