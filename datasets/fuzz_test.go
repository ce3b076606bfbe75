package datasets

import (
	"bytes"
	"math"
	"reflect"
	"testing"
)

// fuzz checks a reader on any input: it ends, does not panic, accounts for every record, and what it
// hands out is in bounds.
func fuzz[T Record](f *testing.F, format Format) {
	f.Add([]byte(samples[format]))
	f.Add([]byte("\xef\xbb\xbf" + samples[format][:len(samples[format])*2/3]))
	f.Add(bytes.ReplaceAll([]byte(samples[format]), []byte("1"), []byte("-1")))
	f.Add(bytes.ReplaceAll([]byte(samples[format]), []byte("0"), []byte("NaN")))
	f.Add(bytes.ReplaceAll([]byte(samples[format]), []byte(","), []byte(",,")))
	f.Fuzz(func(t *testing.T, data []byte) {
		n := 0
		rep, err := Read(format, "fuzz", bytes.NewReader(data), func(r *T) error {
			n++
			checkBounds(t, reflect.ValueOf(*r))
			return nil
		})
		dropped := 0
		for _, k := range rep.Dropped {
			dropped += k
		}
		if rep.Kept != n || rep.Rows != n+dropped || rep.Reordered > n {
			t.Fatalf("%v, but %d handed out", rep, n)
		}
		if err == nil && n == 0 {
			t.Fatal("nothing read, and no error")
		}
		if err != nil && err.Error() == "" {
			t.Fatal("an error without a text")
		}
	})
}

// checkBounds makes sure that no number is infinite or below -1. Only Arrival and T may be negative,
// in files that are out of order.
func checkBounds(t *testing.T, v reflect.Value) {
	for i := range v.NumField() {
		name, field := v.Type().Field(i).Name, v.Field(i)
		switch field.Kind() {
		case reflect.Struct:
			checkBounds(t, field)
		case reflect.Int:
			if field.Int() < Unknown || field.Int() > most {
				t.Fatalf("%s = %d", name, field.Int())
			}
		case reflect.Float64:
			if x := field.Float(); math.IsInf(x, 0) || x < 0 && name != "Arrival" && name != "T" {
				t.Fatalf("%s = %v", name, x)
			}
		default: // texts and lists
		}
	}
}

func FuzzAzure(f *testing.F)             { fuzz[Row](f, Azure) }
func FuzzMooncake(f *testing.F)          { fuzz[Row](f, Mooncake) }
func FuzzBurstGPT(f *testing.F)          { fuzz[Row](f, BurstGPT) }
func FuzzAgentic(f *testing.F)           { fuzz[Row](f, Agentic) }
func FuzzEPP(f *testing.F)               { fuzz[Row](f, EPP) }
func FuzzLMBench(f *testing.F)           { fuzz[Row](f, LMBench) }
func FuzzVLLMBench(f *testing.F)         { fuzz[Row](f, VLLMBench) }
func FuzzInferencePerf(f *testing.F)     { fuzz[Row](f, InferencePerf) }
func FuzzGuideLLM(f *testing.F)          { fuzz[Row](f, GuideLLM) }
func FuzzOTLP(f *testing.F)              { fuzz[Row](f, OTLP) }
func FuzzAccessLog(f *testing.F)         { fuzz[Row](f, AccessLog) }
func FuzzMeasured(f *testing.F)          { fuzz[Row](f, Measured) }
func FuzzVLLMCPU(f *testing.F)           { fuzz[Row](f, VLLMCPU) }
func FuzzServeGenRates(f *testing.F)     { fuzz[Rate](f, ServeGenRates) }
func FuzzServeGenLengths(f *testing.F)   { fuzz[Lengths](f, ServeGenLengths) }
func FuzzTimeSeries(f *testing.F)        { fuzz[Sample](f, TimeSeries) }
func FuzzEngineLog(f *testing.F)         { fuzz[Sample](f, EngineLog) }
func FuzzFPM(f *testing.F)               { fuzz[Pass](f, FPM) }
func FuzzSteps(f *testing.F)             { fuzz[Step](f, Steps) }
func FuzzSilicon(f *testing.F)           { fuzz[Aggregate](f, Silicon) }
func FuzzInferenceStages(f *testing.F)   { fuzz[Stage](f, InferenceStages) }
func FuzzStageTable(f *testing.F)        { fuzz[Stage](f, StageTable) }
func FuzzSplitwiseProfiles(f *testing.F) { fuzz[Profile](f, SplitwiseProfiles) }
func FuzzSidecarCost(f *testing.F)       { fuzz[Cost](f, SidecarCost) }
func FuzzPodCounts(f *testing.F)         { fuzz[Pods](f, PodCounts) }

// FuzzDetect checks that finding the format of anything ends and, if it succeeds, names a known one.
func FuzzDetect(f *testing.F) {
	for _, s := range samples {
		f.Add([]byte(s))
	}
	f.Add([]byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := newSource("fuzz", bytes.NewReader(data))
		if err != nil {
			return
		}
		if found, err := s.detect(); err == nil {
			if _, ok := formats[found]; !ok {
				t.Fatalf("unknown format %q", found)
			}
		}
	})
}
