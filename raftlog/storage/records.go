package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/mortise-lock/mortise/raftlog"
)

const (
	metaMagic    = "mortiseM"
	maxMetaBytes = 4 << 20
	maxMetaName  = 255
)

type logState uint8

const (
	logMade  logState = iota
	logBegun          // its first batch is durable, so its files must exist
	logEnded          // it must never be opened again
)

type logRecord struct {
	raftlog.Identity
	state logState
}

// metaState is the content of meta.db.
type metaState struct {
	generation uint64
	logs       []logRecord
	records    map[string][]byte
}

// encode returns the content of meta.db:
//
//	magic [8]byte; version uint32; generation uint64;
//	number of logs uint32, for each: group, id uint64, state uint8;
//	number of records uint32, for each by name: length uint32, name, length uint32, value;
//	CRC32C uint32
func (m *metaState) encode() []byte {
	le := binary.LittleEndian
	b := append([]byte(nil), metaMagic...)
	b = le.AppendUint32(b, formatVersion)
	b = le.AppendUint64(b, m.generation)
	b = le.AppendUint32(b, uint32(len(m.logs)))
	for _, l := range m.logs {
		b = le.AppendUint64(b, l.Group)
		b = le.AppendUint64(b, l.ID)
		b = append(b, byte(l.state))
	}
	b = le.AppendUint32(b, uint32(len(m.records)))
	for _, name := range slices.Sorted(maps.Keys(m.records)) {
		b = le.AppendUint32(b, uint32(len(name)))
		b = append(b, name...)
		b = le.AppendUint32(b, uint32(len(m.records[name])))
		b = append(b, m.records[name]...)
	}
	return le.AppendUint32(b, checksum(b))
}

// decodeMeta decodes the content. The result shares memory with b.
func decodeMeta(b []byte) (m metaState, err error) {
	if len(b) < len(metaMagic)+8 {
		return m, fmt.Errorf("the records are only %d bytes long", len(b))
	}
	body := b[:len(b)-4]
	if binary.LittleEndian.Uint32(b[len(body):]) != checksum(body) {
		return m, errors.New("the records do not match their checksum")
	}
	r := reader{b: body}
	if string(r.bytes(8)) != metaMagic {
		return m, errors.New("the records are not those of mortise")
	}
	if v := r.u32(); v != formatVersion {
		return m, fmt.Errorf("the records have format version %d, and this version of mortise supports only %d", v,
			formatVersion)
	}
	m.generation, m.records = r.u64(), map[string][]byte{}
	for n := r.u32(); n > 0 && !r.bad; n-- {
		m.logs = append(m.logs, logRecord{raftlog.Identity{Group: r.u64(), ID: r.u64()}, logState(r.u8())})
	}
	for n := r.u32(); n > 0 && !r.bad; n-- {
		name := string(r.bytes(uint64(r.u32())))
		value := r.bytes(uint64(r.u32()))
		m.records[name] = value[:len(value):len(value)]
	}
	if r.bad || len(r.b) > 0 {
		return metaState{}, errors.New("the records make no sense although their checksum is right")
	}
	return m, nil
}

func (m *metaState) find(id uint64) *logRecord {
	for i := range m.logs {
		if m.logs[i].ID == id {
			return &m.logs[i]
		}
	}
	return nil
}

// alone reports whether all logs except the given one have ended.
func (m *metaState) alone(but raftlog.Identity) bool {
	return !slices.ContainsFunc(m.logs, func(l logRecord) bool { return l.Identity != but && l.state != logEnded })
}

// end marks all logs except the given one as ended.
func (m *metaState) end(but raftlog.Identity) {
	for i := range m.logs {
		if m.logs[i].Identity != but {
			m.logs[i].state = logEnded
		}
	}
}
