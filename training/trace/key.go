package trace

import (
	"encoding/binary"
	"time"
)

// A key is: 'o', hour (4 bytes), minute (1), nanoseconds since 1970 (8), number (4); big-endian, so
// that keys sort by time and hours and minutes are prefixes.
const (
	keyMark   = 'o'
	hourBytes = 1 + 4
	keyBytes  = hourBytes + 1 + 8 + 4
)

func appendKey(dst []byte, at time.Time, seq uint32) []byte {
	ns := at.UnixNano()
	dst = append(dst, keyMark)
	dst = binary.BigEndian.AppendUint32(dst, uint32(ns/int64(time.Hour)))
	dst = append(dst, byte(ns/int64(time.Minute)%60))
	dst = binary.BigEndian.AppendUint64(dst, uint64(ns))
	return binary.BigEndian.AppendUint32(dst, seq)
}

func hourOf(key []byte) uint32 { return binary.BigEndian.Uint32(key[1:]) }

func hourPrefix(hour uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{keyMark}, hour)
}

// startOf is the beginning of an hour.
func startOf(hour uint32) time.Time {
	return time.Unix(int64(hour)*int64(time.Hour/time.Second), 0).UTC()
}

func hourAt(t time.Time) uint32 {
	return uint32(max(0, min(t.Unix()/int64(time.Hour/time.Second), 1<<32-1)))
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 MST") }
