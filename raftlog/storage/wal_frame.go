package storage

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
)

// A frame is one record of the log, written by one Save as a whole:
//
//	 0  uint32  magic
//	 4  uint32  length of the payload, a multiple of 8
//	 8  uint64  number: counts up by one from frame to frame, over all segments
//	16  uint64  salt of the segment
//	24  uint32  CRC32C of the payload
//	28  uint32  CRC32C of the preceding bytes
//	32          payload: items, then zeros; whitened
//
// Numbers are little-endian. Frames are contiguous. The salt is random for each segment, so that
// old content of a recycled file is not taken for a frame.
const (
	frameMagic     = 0x316d726d // "mrm1"
	frameHeadBytes = 32
	frameAlign     = 8

	maxFrameBytes = 1 << 30
)

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli()) }

type frameHead struct {
	length  uint32
	number  uint64
	salt    uint64
	payload uint32 // CRC32C of the payload
}

func (h frameHead) put(b []byte) {
	le := binary.LittleEndian
	le.PutUint32(b[0:], frameMagic)
	le.PutUint32(b[4:], h.length)
	le.PutUint64(b[8:], h.number)
	le.PutUint64(b[16:], h.salt)
	le.PutUint32(b[24:], h.payload)
	le.PutUint32(b[28:], checksum(b[:28]))
}

func readFrameHead(b []byte, salt uint64) (frameHead, bool) {
	le := binary.LittleEndian
	if len(b) < frameHeadBytes || le.Uint32(b) != frameMagic || le.Uint64(b[16:]) != salt ||
		le.Uint32(b[28:]) != checksum(b[:28]) {
		return frameHead{}, false
	}
	return frameHead{length: le.Uint32(b[4:]), number: le.Uint64(b[8:]), salt: salt, payload: le.Uint32(b[24:])}, true
}

// sealFrame completes a frame in b, which has room for the head, followed by the payload.
func sealFrame(b []byte, number, salt uint64) []byte {
	for len(b)%frameAlign != 0 {
		b = append(b, 0)
	}
	payload := b[frameHeadBytes:]
	h := frameHead{length: uint32(len(payload)), number: number, salt: salt, payload: checksum(payload)}
	h.whiten(payload)
	h.put(b)
	return b
}

// whiten combines a payload with a pseudo-random bit stream. A second call restores the payload.
// Payloads and old file contents are mostly zeros and counters. After whitening, a sector that was
// not written differs from the right one in about half of its bits. A single wrong bit is then
// always damage (oneBitOff).
func (h frameHead) whiten(payload []byte) {
	le := binary.LittleEndian
	x := h.salt ^ h.number<<32 ^ uint64(h.payload)
	for ; len(payload) >= 8; payload = payload[8:] {
		x += 0x9e3779b97f4a7c15
		z := (x ^ x>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		le.PutUint64(payload, le.Uint64(payload)^z^z>>31)
	}
}

type verdict uint8

const (
	frameWhole verdict = iota // the expected frame
	// no part of the expected frame
	frameAbsent
	frameTorn    // a part of the expected frame: the write did not completely reach the disk
	frameDamaged // the expected frame was written completely and has changed since
)

// readFrame reads the frame with this number from b, the rest of a segment. It returns a copy of
// the payload and the length of the frame. The comment of wal explains torn and damaged frames.
func readFrame(b []byte, number, salt uint64) (payload []byte, size int, v verdict) {
	head, ok := readFrameHead(b, salt)
	if ok && head.number == number && head.length%frameAlign == 0 &&
		int64(head.length) <= int64(len(b)-frameHeadBytes) {
		payload = slices.Clone(b[frameHeadBytes : frameHeadBytes+int(head.length)])
		head.whiten(payload)
		sum := checksum(payload)
		if sum == head.payload {
			return payload, frameHeadBytes + int(head.length), frameWhole
		}
		if oneBitOff(len(payload), sum^head.payload) || laterFrame(b, number, salt) {
			return nil, 0, frameDamaged
		}
		return nil, 0, frameTorn
	}
	switch {
	case ok: // an intact but wrong head, which a crash cannot cause
		return nil, 0, frameDamaged
	case headOneBitOff(b, number, salt), laterFrame(b, number, salt):
		return nil, 0, frameDamaged
	}
	return nil, 0, frameAbsent
}

// laterFrame reports whether the head of a frame with a higher number begins anywhere in b.
func laterFrame(b []byte, number, salt uint64) bool {
	le := binary.LittleEndian
	for at := 0; at+frameHeadBytes <= len(b); at += frameAlign {
		if le.Uint32(b[at:]) != frameMagic {
			continue
		}
		if h, ok := readFrameHead(b[at:], salt); ok && h.number > number {
			return true
		}
	}
	return false
}

func headOneBitOff(b []byte, number, salt uint64) bool {
	if len(b) < frameHeadBytes {
		return false
	}
	var head [frameHeadBytes]byte
	copy(head[:], b)
	for bit := range frameHeadBytes * 8 {
		head[bit/8] ^= 1 << (bit % 8)
		if h, ok := readFrameHead(head[:], salt); ok && h.number == number {
			return true
		}
		head[bit/8] ^= 1 << (bit % 8)
	}
	return false
}

// oneBitOff reports whether a change of one bit in a text of n bytes can change its checksum by the
// given difference. A CRC is linear, so the difference depends only on the distance of the bit from
// the end.
func oneBitOff(n int, difference uint32) bool {
	table := castagnoli()
	var flip [8]uint32
	for bit := range flip {
		flip[bit] = table[1<<bit]
	}
	for range n {
		for bit, v := range flip {
			if v == difference {
				return true
			}
			flip[bit] = table[v&0xff] ^ v>>8
		}
	}
	return false
}
