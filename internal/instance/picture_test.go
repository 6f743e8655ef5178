package instance

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/plain"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

func TestThePictureIsBounded(t *testing.T) {
	var p picture
	for i := range uint64(1000) {
		id := nodeidtest.ID(i + 1)
		p.read(&query.MemberList{Names: []*query.Name{{Instance: id[:], Name: "x"}}})
	}
	if len(p.voters) > votersKept {
		t.Errorf("%d names are kept", len(p.voters))
	}
}

// TestNoNameIsRaw checks that names and zones of other instances are escaped before they are
// stored.
func TestNoNameIsRaw(t *testing.T) {
	const nasty = "x\x1b[2J\r\n\a\u009b\u202ey"
	var p picture
	member, name := nodeidtest.ID(8), nodeidtest.ID(9)
	p.read(&query.MemberList{
		Members: []*query.Member{{Name: nasty, Zone: nasty, Votes: true, Instance: member[:]}},
		Names:   []*query.Name{{Name: nasty, Instance: name[:]}},
	})
	gossip := cluster.Status{Members: []cluster.Member{{Name: nasty, Zone: nasty, Instance: nodeidtest.ID(7)}}}
	names := p.names(&gossip)
	for i := range uint64(3) {
		if is := names.Of(nodeidtest.ID(7 + i)); is.Name == "" || plain.Text(is.Name+is.Zone) != is.Name+is.Zone {
			t.Errorf("%d: %q", 7+i, is)
		}
	}
}

// A guest can invent thousands of instances in gossip, and can ask for the status. So the names in
// a status must not cost more if gossip knows more instances.
func TestNamesDoNotGrowWithGossip(t *testing.T) {
	bytes := func(known uint64) uint64 {
		var p picture
		c := cluster.Status{Voters: []cluster.Voter{{Instance: nodeidtest.ID(1)}}}
		for i := range known {
			c.Members = append(c.Members, cluster.Member{Name: "\x1b", Zone: "\x1b", Instance: nodeidtest.ID(known - i)})
		}
		const runs = 100
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range runs {
			if names := p.names(&c); names.Name(nodeidtest.ID(1)) != `\u{1b}` {
				t.Fatalf("the name of the voter is %q", names.Name(nodeidtest.ID(1)))
			}
		}
		runtime.ReadMemStats(&after)
		return (after.TotalAlloc - before.TotalAlloc) / runs
	}
	if few, many := bytes(3), bytes(4096); many > 2*few+1024 {
		t.Errorf("with 3 instances a picture takes %d bytes, with 4,096 it takes %d", few, many)
	}
}

// TestWhereANameIsFrom checks which name and zone a picture has of an instance, for each source and
// each order of two of them. The name in gossip comes first, then what was learned of replicas.
func TestWhereANameIsFrom(t *testing.T) {
	id := nodeidtest.ID(1)
	listed := func(name, zone string, votes bool) func(*picture) {
		return func(p *picture) {
			p.read(&query.MemberList{Members: []*query.Member{{Instance: id[:], Name: name, Zone: zone, Votes: votes}}})
		}
	}
	named := func(name string) func(*picture) {
		return func(p *picture) { p.read(&query.MemberList{Names: []*query.Name{{Instance: id[:], Name: name}}}) }
	}
	replica := cluster.Status{Voters: []cluster.Voter{{Instance: id}}}
	gossiped := func(name, zone string, votes bool) func(*picture) {
		return func(p *picture) {
			c := cluster.Status{Members: []cluster.Member{{Name: "other", Zone: "other", Instance: nodeidtest.ID(2)},
				{Name: name, Zone: zone, Instance: id}}}
			if votes {
				c.Voters = replica.Voters
			}
			p.names(&c)
		}
	}
	for i, row := range []struct {
		sources []func(*picture)
		gossip  string // the name in gossip at the end
		want    InstanceName
	}{
		{want: InstanceName{}},
		{[]func(*picture){listed("a", "z", true)}, "", InstanceName{"a", "z"}},
		{[]func(*picture){listed("a", "z", true)}, "g", InstanceName{"g", "gz"}},
		{[]func(*picture){listed("a", "z", false)}, "", InstanceName{}},
		{[]func(*picture){listed("", "z", true)}, "", InstanceName{}},
		{[]func(*picture){named("b")}, "", InstanceName{"b", ""}},
		{[]func(*picture){named("")}, "", InstanceName{}},
		{[]func(*picture){listed("a", "z", true), named("b")}, "", InstanceName{"b", "z"}},
		{[]func(*picture){listed("a", "z", true), listed("c", "y", true)}, "", InstanceName{"c", "y"}},
		{[]func(*picture){listed("a", "z", true), named("")}, "", InstanceName{"a", "z"}},
		{[]func(*picture){gossiped("c", "x", true)}, "", InstanceName{"c", "x"}},
		{[]func(*picture){gossiped("c", "x", false)}, "", InstanceName{}},
		{[]func(*picture){listed("a", "z", true), gossiped("c", "x", true)}, "", InstanceName{"c", "x"}},
		{[]func(*picture){listed("a", "z", true), gossiped("", "", true)}, "", InstanceName{"a", "z"}},
		{[]func(*picture){listed("a", "z", true), gossiped("", "", false)}, "", InstanceName{}},
	} {
		var p picture
		for _, source := range row.sources {
			source(&p)
		}
		at := replica
		if row.gossip != "" {
			at.Members = []cluster.Member{{Name: row.gossip, Zone: row.gossip + "z", Instance: id}}
		}
		names := p.names(&at)
		if is := names.Of(id); is != row.want {
			t.Errorf("%d: %+v, want %+v", i, is, row.want)
		}
		want := row.want.Name
		if want == "" {
			want = id.String()
		}
		if is := names.Name(id); is != want {
			t.Errorf("%d: called %q, want %q", i, is, want)
		}
		if is := names.Name(nodeid.ID{}); is != "" {
			t.Errorf("%d: no instance is called %q", i, is)
		}
	}
	var p picture
	zero := nodeid.ID{}
	p.read(&query.MemberList{Names: []*query.Name{{Instance: zero[:], Name: "zero"}}})
	for range 2 { // those that are known are learned again, and others find no room
		for i := range uint64(votersKept + 1) {
			other := nodeidtest.ID(i + 1)
			p.read(&query.MemberList{Names: []*query.Name{{Instance: other[:], Name: fmt.Sprint(len(p.voters))}}})
		}
	}
	names := p.names(&cluster.Status{})
	for i, want := range map[uint64]string{1: "64", votersKept: "64", votersKept + 1: ""} {
		if is := names.Of(nodeidtest.ID(i)).Name; is != want {
			t.Errorf("instance %d of %d is called %q, want %q", i, votersKept, is, want)
		}
	}
	if is := names.Of(zero); is != (InstanceName{}) {
		t.Errorf("the zero ID is called %+v", is)
	}
}
