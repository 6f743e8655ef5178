package instance

import (
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
		if is := names[nodeidtest.ID(7+i)]; is.Name == "" || plain.Text(is.Name+is.Zone) != is.Name+is.Zone {
			t.Errorf("%d: %q", 7+i, is)
		}
	}
}
