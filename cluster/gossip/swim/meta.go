package swim

import (
	"encoding/binary"
	"errors"

	"github.com/mortise-lock/mortise/cluster/gossip"
	"github.com/mortise-lock/mortise/internal/formats"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// All fields of [gossip.Meta] together fit into maxMetaBytes. memberlist panics if metadata are
// longer, and sends every byte many times.
const (
	metaVersion  = formats.Gossip
	maxMetaBytes = 512
	maxAt        = 1<<56 - 1 // fits into a uvarint of eight bytes; no log index is larger
)

var errMeta = errors.New("cluster: malformed gossip meta data")

// appendMeta encodes m as a version byte, the ID, two uvarints, a flag byte, and three texts, each
// after its length.
func appendMeta(b []byte, m gossip.Meta) []byte {
	b = append(b, metaVersion)
	b = append(b, m.Instance[:]...)
	for _, v := range [...]uint64{m.Group, min(m.At, maxAt)} {
		b = binary.AppendUvarint(b, v)
	}
	flag := byte(0)
	if m.Leader {
		flag = 1
	}
	b = append(b, flag)
	for _, s := range [...]string{m.Name, m.Zone, m.Addr} {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	return b
}

// padded encodes m followed by up to 15 zero bytes. The number of zero bytes differs between calls
// and between instances, because memberlist can lose one of two queued broadcasts of equal length.
// Its queue orders them by transmissions, length, and a number that restarts whenever the queue is
// empty. After this loss other instances have an old Meta until the next full exchange, half a
// minute later.
func padded(m gossip.Meta, turn uint64) []byte {
	b := appendMeta(nil, m)
	pad := int((uint64(m.Instance[0]) + 7*turn) % 16)
	return append(b, make([]byte, max(min(pad, maxMetaBytes-len(b)), 0))...)
}

// decodeMeta decodes the result of appendMeta. It ignores bytes after the known fields, since later
// versions may add fields.
func decodeMeta(b []byte) (gossip.Meta, error) {
	var m gossip.Meta
	if len(b) < 1 || len(b) > maxMetaBytes || b[0] != metaVersion {
		return gossip.Meta{}, errMeta
	}
	if len(b) < 1+nodeid.Size {
		return gossip.Meta{}, errMeta
	}
	m.Instance, b = nodeid.ID(b[1:1+nodeid.Size]), b[1+nodeid.Size:]
	for _, field := range [...]*uint64{&m.Group, &m.At} {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return gossip.Meta{}, errMeta
		}
		*field, b = v, b[n:]
	}
	if len(b) < 1 || b[0] > 1 || m.Instance.IsZero() || m.At > maxAt {
		return gossip.Meta{}, errMeta
	}
	m.Leader, b = b[0] == 1, b[1:]
	limits := [...]int{gossip.MaxNameBytes, gossip.MaxZoneBytes, gossip.MaxAddrBytes}
	for i, field := range [...]*string{&m.Name, &m.Zone, &m.Addr} {
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(limits[i]) || size > uint64(len(b)-n) {
			return gossip.Meta{}, errMeta
		}
		*field, b = string(b[n:n+int(size)]), b[n+int(size):]
	}
	return m, nil
}
