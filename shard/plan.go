package shard

import (
	"fmt"
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

func memberValue(weight int, id string) string { return fmt.Sprintf("%d %s", weight, id) }

func (p *plan) apply(e *mortise.Event) {
	if e.What == mortise.EventReset {
		clear(p.members)
		clear(p.owners)
		return
	}
	held := e.What == mortise.EventHeld
	if !held && e.What != mortise.EventFreed && e.What != mortise.EventLeft {
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
	m := member{token: e.Token}
	if _, err := fmt.Sscanf(e.Value, "%d %s", &m.weight, &m.id); held && err == nil {
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
func (p *plan) next(now time.Time) (end, begin []int) {
	all, present := make([]member, 0, len(p.members)), false
	for _, m := range p.members {
		all = append(all, m)
		present = present || m.id == p.me
	}
	if !present {
		return nil, nil
	}
	more := quotas(all, p.count)[p.me]
	for _, ending := range p.running {
		if !ending {
			more--
		}
	}
	for i := 0; i < p.count && more != 0; i++ {
		index := (p.first + i) % p.count
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

// ended records that a shard does not run here any more. If it failed, it may begin again at the
// given time.
func (p *plan) ended(index int, again time.Time) {
	delete(p.running, index)
	if delete(p.again, index); !again.IsZero() {
		p.again[index] = again
	}
}
