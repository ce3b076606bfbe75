package seed

import (
	"slices"
	"strconv"
	"strings"
)

// model is what of a model decides the work of a token.
type model struct {
	key    string  // of the table: equal keys are equal models
	total  float64 // 1e9 parameters
	active float64 // of them, those that a token meets
	width  float64 // bytes per parameter
}

// moe reports a mixture of experts.
func (m *model) moe() bool { return m.active < 0.9*m.total }

// named are models whose names do not tell their sizes, or tell them otherwise.
var named = []struct {
	parts         string
	total, active float64
}{
	{"gpt oss 120b", 116.8, 5.1}, {"gpt oss 20b", 20.9, 3.6},
	{"deepseek v2 lite", 15.7, 2.4}, {"deepseek v3", 671, 37}, {"deepseek v3.1", 671, 37}, {"deepseek v3.2", 671, 37},
	{"kimi k2", 1000, 32}, {"glm 4.5 air", 106, 12}, {"glm 4.5", 355, 32}, {"glm 4.6", 355, 32}, {"minimax m2", 230, 10},
	{"llama 4 scout", 109, 17}, {"llama 4 maverick", 400, 17}, {"phi 4 mini", 3.8, 3.8}, {"phi 4", 14.7, 14.7}, {"phi 3 mini", 3.8, 3.8},
	{"mistral nemo", 12.2, 12.2}, {"mistral small", 24, 24}, {"mistral large", 123, 123}, {"command r plus", 104, 104}, {"command r", 35, 35},
}

// twins are models of one shape, by the parts of their names.
var twins = map[string]string{
	"llama 3 8b": "llama-3.1-8b", "llama 3.1 8b": "llama-3.1-8b", "llama 3 70b": "llama-3.3-70b", "llama 3.1 70b": "llama-3.3-70b",
	"llama 3.3 70b": "llama-3.3-70b", "qwen3 32b": "qwen3-32b", "qwen3 14b": "qwen3-14b", "qwen3 30b a3b": "qwen3-30b-a3b",
	"mixtral 8x7b": "mixtral-8x7b", "gpt oss 120b": "gpt-oss-120b",
}

// modelOf reads a name: known ones, else those that tell their size.
func modelOf(name string) (model, bool) {
	name = strings.ToLower(name)
	name = name[strings.LastIndexByte(name, '/')+1:]
	parts := strings.FieldsFunc(name, func(c rune) bool { return strings.ContainsRune("-_: ", c) })
	has := func(words string) bool {
		return !slices.ContainsFunc(strings.Fields(words), func(w string) bool { return !slices.Contains(parts, w) })
	}
	if has("deepseek r1") && !has("distill") {
		parts = append(parts, "v3")
	}
	m := model{width: widthOf(parts)}
	for _, n := range named {
		if has(n.parts) {
			m.total, m.active = n.total, n.active
			break
		}
	}
	if m.total == 0 {
		m.total, m.active = sizeOf(parts)
	}
	best := 0 // the twin with most parts
	for words, key := range twins {
		if n := len(strings.Fields(words)); n > best && has(words) && !has("distill") {
			best, m.key = n, key
		}
	}
	return m, m.total > 0
}

// sizeOf finds sizes such as 8b, 8x7b and 30b with a3b among the parts of a name.
func sizeOf(parts []string) (total, active float64) {
	for _, p := range parts {
		body, billions := strings.CutSuffix(p, "b")
		if !billions {
			if body, millions := strings.CutSuffix(p, "m"); millions && total == 0 {
				total = number(body) / 1e3
			}
			continue
		}
		if experts, each, ok := strings.Cut(body, "x"); ok {
			if n, of := number(experts), number(each); n > 0 && of > 0 {
				total, active = 0.83*n*of, 1.84*of // two experts a token, attention shared
			}
			continue
		}
		if a, ok := strings.CutPrefix(body, "a"); ok && number(a) > 0 {
			active = number(a)
		} else if v := number(body); v > 0 && total == 0 {
			total = v
		}
	}
	if active == 0 || active > total {
		active = total
	}
	return total, active
}

// number is a plain size, or 0.
func number(s string) float64 {
	for _, c := range s {
		if (c < '0' || c > '9') && c != '.' {
			return 0
		}
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || v > 1e4 {
		return 0
	}
	return v
}

// widthOf is the number of bytes that a parameter takes.
func widthOf(parts []string) float64 {
	for _, p := range parts {
		switch p {
		case "fp8", "int8", "w8a8", "8bit":
			return 1
		case "awq", "gptq", "int4", "w4a16", "4bit", "fp4", "nvfp4", "mxfp4":
			return 0.55
		}
	}
	return 2
}
