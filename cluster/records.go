package cluster

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/gossip"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// Records stores a few small values that must survive a restart of an instance. This package
// chooses their names. Its methods are not called concurrently.
type Records interface {
	// Load returns all values of this package. The map is empty for a new directory and belongs to
	// the caller.
	Load() (map[string][]byte, error)
	// Save makes all changes durable atomically, and returns when they are durable. A nil value
	// deletes the entry. Save keeps no reference to changes. After an error, Save is not called
	// again until the next start.
	Save(changes map[string][]byte) error
}

// The names of the records. They must never change.
const (
	recordIdentity = "identity" // owner of the directory, and how often it was started
	recordState    = "birth"    // this incarnation: newborn, bound to a charter, or member
	recordBook     = "book"     // the address book
	recordKey      = "key"      // the private key; its hash is the ID in the state
)

// ErrDirectory is returned if an instance cannot run with its directory. The wrapping error
// contains the reason and what to do.
var ErrDirectory = errors.New("cluster: this directory cannot be used")

// A record is a version byte, the content, and the CRC32C of both, since a store need not detect
// damage.
const (
	recordVersion  = 1
	maxRecordBytes = 2 << 20
	maxLabelBytes  = 255
	maxSiteBytes   = 128
	idMagic        = 'i' // first byte of an identity; founding does not use it
)

func castagnoli(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

func seal(content []byte) []byte {
	b := append([]byte{recordVersion}, content...)
	return binary.BigEndian.AppendUint32(b, castagnoli(b))
}

func unseal(name string, b []byte) ([]byte, error) {
	if len(b) < 5 || len(b) > maxRecordBytes || castagnoli(b[:len(b)-4]) != binary.BigEndian.Uint32(b[len(b)-4:]) {
		return nil, damaged(name)
	}
	if b[0] != recordVersion {
		return nil, fmt.Errorf("%w: its record %q has version %d, and this build knows %d: start a newer build",
			ErrDirectory, name, b[0], recordVersion)
	}
	return b[1 : len(b)-4], nil
}

func damaged(name string) error {
	return fmt.Errorf("%w: its record %q is missing or damaged: empty the directory, the instance then joins as a "+
		"new one", ErrDirectory, name)
}

type identity struct {
	Life  uint64 // number of the last start
	Label string
	Name  string
	Row
}

// Row is an unbroken row of starts with one directory at one Site, see Config.Site. All of them but
// the last have ended.
//
// It is not enough to compare the Site of a start with that of the start before it: an earlier
// start may still run on another machine, whose disk was taken away by force.
type Row struct {
	Site  string
	Since uint64 // the first start of the row
}

// Next returns the row of the start with the number life at a site, which follows the last start of
// r. The zero Row is that of a new directory.
func (r Row) Next(site string, life uint64) Row {
	if site == "" || site != r.Site {
		return Row{site, life}
	}
	return r
}

// Ended returns the first start that has certainly ended, if life is the number of the last one.
// Those between them have ended, too. Zero means that none has.
func (r Row) Ended(life uint64) uint64 {
	if r.Since < life {
		return r.Since
	}
	return 0
}

func (id identity) append(b []byte) []byte {
	b = binary.AppendUvarint(binary.AppendUvarint(append(b, idMagic), id.Life), id.Since)
	for _, s := range [...]string{id.Label, id.Name, id.Site} {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	return b
}

func decodeIdentity(b []byte) (identity, error) {
	var id identity
	if len(b) < 1 || b[0] != idMagic {
		return id, damaged(recordIdentity)
	}
	life, n := binary.Uvarint(b[1:])
	if n <= 0 || life == 0 || life >= 1<<31-1 { // see nodeid.Start
		return id, damaged(recordIdentity)
	}
	b = b[1+n:]
	since, n := binary.Uvarint(b)
	if n <= 0 || since == 0 || since > life {
		return id, damaged(recordIdentity)
	}
	id.Life, id.Since, b = life, since, b[n:]
	limits := [...]int{maxLabelBytes, gossip.MaxNameBytes, maxSiteBytes}
	for i, field := range [...]*string{&id.Label, &id.Name, &id.Site} {
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(limits[i]) || size > uint64(len(b)-n) {
			return identity{}, damaged(recordIdentity)
		}
		*field, b = string(b[n:n+int(size)]), b[n+int(size):]
	}
	if len(b) > 0 {
		return identity{}, damaged(recordIdentity)
	}
	return id, nil
}

type stored struct {
	identity identity
	state    founding.State
	key      nodeid.Key
}

// recall reads the records. It returns nil for a new directory.
func recall(r Records) (*stored, error) {
	records, err := r.Load()
	if err != nil {
		return nil, fmt.Errorf("%w: it cannot be read: %w", ErrDirectory, err)
	}
	if len(records) == 0 {
		return nil, nil
	}
	content := make(map[string][]byte, 4)
	for _, name := range [...]string{recordIdentity, recordState, recordBook, recordKey} {
		if content[name], err = unseal(name, records[name]); err != nil {
			return nil, err
		}
	}
	var s stored
	if s.identity, err = decodeIdentity(content[recordIdentity]); err != nil {
		return nil, err
	}
	if s.state, err = founding.DecodeState(content[recordState]); err != nil {
		return nil, damaged(recordState)
	}
	if s.state.Voters, err = founding.DecodeVoters(content[recordBook]); err != nil {
		return nil, damaged(recordBook)
	}
	if s.key, err = nodeid.ParseKey(content[recordKey]); err != nil || s.key.ID() != s.state.Instance {
		return nil, damaged(recordKey)
	}
	if s.state.Refused != "" {
		return nil, refusal(s.state.Refused)
	}
	return &s, nil
}

func refusal(why string) error { return fmt.Errorf("%w: %s", ErrDirectory, why) }

// Beginning is what the directory says of a start before it begins.
type Beginning struct {
	// Key must be Config.Key, because the directory is bound to a charter or belongs to a group. If it
	// is zero, Config.Key may be a new key.
	Key  nodeid.Key
	Life uint64 // the number of this start, see nodeid.Start
	// Since is the first of the starts with this directory, at the same site, that have certainly
	// ended: those from it on, and before Life. Zero means that none has.
	Since uint64
}

// Begins reads what a directory says of its next start, which has this Site. An error wraps
// ErrDirectory and contains what to do.
func Begins(r Records, site string) (b Beginning, err error) {
	s, err := recall(r)
	if err != nil {
		return b, err
	}
	var last identity
	if s != nil {
		last = s.identity
		if s.state.Phase != founding.Newborn {
			b.Key = s.key
		}
	}
	count := last.Life + 1
	b.Life = nodeid.Start(count, site)
	b.Since = nodeid.Start(last.Row.Next(site, count).Ended(count), site)
	return b, nil
}
