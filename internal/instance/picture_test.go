package instance

import (
	"runtime"
	"testing"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/internal/nodeid/nodeidtest"
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
