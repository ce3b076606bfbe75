package predictor

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/presage-router/presage/features"
)

// rowBytes is the length of one row in a state: the features, the label and the base as
// little-endian float32.
const rowBytes = 4 * (int(features.Dim) + 2)

func appendRows(dst []byte, rows []row) []byte {
	put := func(v float32) { dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(v)) }
	for i := range rows {
		for _, v := range rows[i].x {
			put(v)
		}
		put(rows[i].y)
		put(rows[i].base)
	}
	return dst
}

func parseRows(data []byte) ([]row, error) {
	n := len(data) / rowBytes
	if len(data)%rowBytes != 0 || n > treeRows {
		return nil, fmt.Errorf("%d bytes: not at most %d rows of %d", len(data), treeRows, rowBytes)
	}
	if n == 0 {
		return nil, nil
	}
	rows := make([]row, n)
	next := func() float32 {
		v := math.Float32frombits(binary.LittleEndian.Uint32(data))
		data = data[4:]
		return v
	}
	for i := range rows {
		r := &rows[i]
		for f := range r.x {
			if r.x[f] = next(); math.IsInf(float64(r.x[f]), 0) {
				return nil, fmt.Errorf("row %d: %s is infinite", i, features.Field(f))
			}
		}
		r.y, r.base = next(), next()
		if !(math.Abs(float64(r.y)) <= maxLog) || !(math.Abs(float64(r.base)) <= maxLog) {
			return nil, fmt.Errorf("row %d: label %v, base %v: not within %v of zero", i, r.y, r.base, maxLog)
		}
	}
	return rows, nil
}
