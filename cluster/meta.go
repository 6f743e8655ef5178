package cluster

import (
	"encoding/binary"
	"errors"
)

// Bounds of what an instance says about itself by gossip. memberlist panics above 512 bytes and every byte is sent again and again, so
// they are small enough for everything together to fit.
const (
	metaVersion  = 2
	metaBytesMax = 512
	nameBytesMax = 128
	zoneBytesMax = 128
	addrBytesMax = 200
)

var errMeta = errors.New("cluster: malformed gossip meta data")

// meta is what an instance says about itself by gossip. It is advice: nothing that must be true is decided by it.
type meta struct {
	Instance uint64
	Group    uint64 // 0: none
	Raft     uint64 // 0: no voter
	Life     uint64
	At       uint64 // index of the newest configuration of Group that it knows
	Leader   bool   // Group has a leader, as it sees it
	Name     string
	Zone     string
	Addr     string
}

// append encodes m: a version byte, three random IDs of eight bytes, two uvarints, a flag byte, and three texts with their length before them.
func (m meta) append(b []byte) []byte {
	b = append(b, metaVersion)
	for _, v := range [...]uint64{m.Instance, m.Group, m.Raft} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	for _, v := range [...]uint64{m.Life, m.At} {
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

// decodeMeta reads what append wrote. What follows it is left to later versions.
func decodeMeta(b []byte) (meta, error) {
	var m meta
	if len(b) < 1 || len(b) > metaBytesMax || b[0] != metaVersion {
		return meta{}, errMeta
	}
	b = b[1:]
	for _, field := range [...]*uint64{&m.Instance, &m.Group, &m.Raft} {
		if len(b) < 8 {
			return meta{}, errMeta
		}
		*field, b = binary.BigEndian.Uint64(b), b[8:]
	}
	for _, field := range [...]*uint64{&m.Life, &m.At} {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return meta{}, errMeta
		}
		*field, b = v, b[n:]
	}
	if len(b) < 1 || b[0] > 1 || m.Instance == 0 {
		return meta{}, errMeta
	}
	m.Leader, b = b[0] == 1, b[1:]
	limits := [...]int{nameBytesMax, zoneBytesMax, addrBytesMax}
	for i, field := range [...]*string{&m.Name, &m.Zone, &m.Addr} {
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(limits[i]) || size > uint64(len(b)-n) {
			return meta{}, errMeta
		}
		*field, b = string(b[n:n+int(size)]), b[n+int(size):]
	}
	return m, nil
}
