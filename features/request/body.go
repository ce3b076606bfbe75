package request

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// Body reads the complete body of a request whose head wanted it. The bytes are not changed, and
// nothing of them is kept. An error is an [*Error]; r must not be routed then.
//
// A JSON body must be one object in UTF-8 with nothing after it; as engines do, of members of one
// name the last counts, except that what is read here may stand there but once. Values that only
// help to choose an endpoint (max_tokens, n, user, stream) are ignored where they are of the wrong
// type: the engine will say so.
func (p *Parser) Body(r *Request, body []byte) error {
	k := r.memory()
	if r.API == Audio {
		if err := p.form(r, k, body); err != nil {
			return err
		}
		return nil
	}
	defer clear(k.fields[:])
	if err := k.document(r.API, body); err != nil {
		return err
	}
	if err := p.model(r, k, body); err != nil {
		return err
	}
	k.hints(r)
	if err := p.chain(r, k); err != nil {
		return err
	}
	return nil
}

// document checks the body and notes the top-level values that are read.
func (k *work) document(api API, body []byte) *Error {
	i := skipSpace(body, 0)
	switch {
	case i == len(body):
		return refuse("", "empty_body", "body: empty; send a JSON object")
	case bytes.HasPrefix(body, []byte("\xef\xbb\xbf")):
		return refuse("", "invalid_json", "body: begins with a byte order mark, which JSON must not have; leave it out")
	case body[i] != '{':
		return refuse("", "invalid_json", "body: not a JSON object; send one")
	}
	k.at = span{i + 1, i + 1}
	i = skipSpace(body, i+1)
	if i < len(body) && body[i] == '}' {
		return trailing(body, i+1)
	}
	for {
		at, f := checkName(body, i)
		if f != noFault {
			return broken(f, at, len(body))
		}
		end, f := checkValue(body, at)
		if f != noFault {
			return broken(f, end, len(body))
		}
		name := k.name(body[i+1 : stringEnd(body, i)-1])
		if err := k.note(api, name, body, span{at, end}); err != nil {
			return err
		}
		switch i = skipSpace(body, end); {
		case i >= len(body):
			return broken(cutOff, i, len(body))
		case body[i] == '}':
			return trailing(body, i+1)
		case body[i] != ',':
			return broken(badSyntax, i, len(body))
		}
		i = skipSpace(body, i+1)
	}
}

// note keeps a top-level value if it is read.
func (k *work) note(api API, name, body []byte, at span) *Error {
	f := fields[string(name)][api]
	if f == noField {
		return nil
	}
	if k.fields[f] != nil {
		return refuse(string(name), "duplicate_field", "given twice, and readers differ in which one counts; send it once")
	}
	k.fields[f] = body[at.start:at.end]
	if f == fieldModel {
		k.at = at
	}
	return nil
}

func trailing(body []byte, i int) *Error {
	if i = skipSpace(body, i); i < len(body) {
		return refuse("", "invalid_json", fmt.Sprintf("body: goes on at byte %d after the end of the JSON; send one object alone", i))
	}
	return nil
}

// maxModel bounds the length of a model name in bytes.
const maxModel = 512

// model reads the model name, and finds what it is rewritten to.
func (p *Parser) model(r *Request, k *work, body []byte) *Error {
	raw := k.fields[fieldModel]
	if raw == nil {
		target, ok := p.c.Rewrite[everyModel]
		if !ok {
			return refuse("model", "missing_model", "missing; name the model to use")
		}
		r.Model, r.Rewrite = target, target
		k.insertModel(body, target)
		p.adapter(r)
		return nil
	}
	if raw[0] != '"' {
		return wrongKind("model", raw[0], "the name of the model as a string")
	}
	if len(raw) > 6*maxModel+2 {
		return longModel()
	}
	name := appendText(k.buf[:0], raw[1:len(raw)-1])
	if err := checkModel(name); err != nil {
		return err
	}
	r.Model = k.modelName(name)
	if target, ok := p.rewrite(r.Model); ok {
		r.Rewrite = target
		k.renamed = appendQuoted(k.renamed[:0], target)
	}
	p.adapter(r)
	return nil
}

// checkModel refuses what cannot be the name of a model, and would do harm in a log or a label.
func checkModel(name []byte) *Error {
	switch {
	case len(name) == 0:
		return refuse("model", "missing_model", "empty; name the model to use")
	case len(name) > maxModel:
		return longModel()
	case !utf8.Valid(name):
		return refuse("model", "invalid_model", "half of a surrogate pair is no character; no model has such a name")
	case bytes.ContainsFunc(name, func(r rune) bool { return r < 0x20 || r == 0x7f || 0x80 <= r && r < 0xa0 }):
		return refuse("model", "invalid_model", "holds control characters; no model has such a name")
	}
	return nil
}

func longModel() *Error {
	return refuse("model", "invalid_model", "longer than "+strconv.Itoa(maxModel)+" bytes; no model has such a name")
}

// everyModel is the name in Config.Rewrite that stands for all others.
const everyModel = "*"

// rewrite returns what a model name is rewritten to, if it is.
func (p *Parser) rewrite(model string) (string, bool) {
	target, ok := p.c.Rewrite[model]
	if !ok {
		target, ok = p.c.Rewrite[everyModel]
	}
	return target, ok && target != model
}

func (p *Parser) adapter(r *Request) {
	if p.c.Adapter != nil && p.c.Adapter(r.Target()) {
		r.Adapter = r.Target()
	}
}

// modelName returns the name as a string, the last one again where it is the same.
func (k *work) modelName(name []byte) string {
	if k.model != string(name) {
		k.model = string(name)
	}
	return k.model
}

// maxCount bounds the numbers that requests may name: nothing computed from them can overflow.
const maxCount = 1 << 24

// hints reads what helps to choose an endpoint.
func (k *work) hints(r *Request) {
	switch v := k.fields[fieldStream]; string(v) {
	case "true", `"true"`, "1":
		r.Stream = true
	}
	for _, f := range [...]field{fieldMaxCompletion, fieldMaxTokens, fieldMaxOutput} {
		if n, ok := count(k.fields[f]); ok && r.MaxTokens == 0 {
			r.MaxTokens = n
		}
	}
	r.Choices = 1
	if n, ok := count(k.fields[fieldN]); ok {
		r.Choices = min(max(n, 1), maxChoices)
	}
	if r.Session == "" {
		r.Session = k.user()
	}
}

// maxChoices bounds the parallel answers that are counted.
const maxChoices = 1 << 10

// count reads a whole number from 0 up, written in any way that engines take for one, at most
// maxCount.
func count(v []byte) (int, bool) {
	if len(v) > 1 && v[0] == '"' {
		v = v[1 : len(v)-1]
	}
	if len(v) == 0 || len(v) > maxDigits {
		return 0, false
	}
	n := 0
	for _, c := range v {
		if c < '0' || c > '9' {
			x, err := strconv.ParseFloat(string(v), 64)
			if err != nil || x < 0 || x != math.Trunc(x) {
				return 0, false
			}
			return int(min(x, maxCount)), true
		}
		n = min(10*n+int(c-'0'), maxCount)
	}
	return n, true
}

// maxDigits is longer than any number that is worth reading.
const maxDigits = 32

// user returns the session that the body names: "user", or what Messages have for it.
func (k *work) user() string {
	v := k.fields[fieldUser]
	if m := k.fields[fieldMetadata]; len(v) == 0 && len(m) > 0 && m[0] == '{' {
		c := cursor{b: m}
		for c.enter(); c.more(); {
			is := string(k.name(c.name())) == "user_id"
			if value := c.value(); is {
				v = value
			}
		}
	}
	if len(v) < 2 || v[0] != '"' {
		return ""
	}
	if len(v) > 6*maxLabel {
		return hashed(k.digest(v))
	}
	return label(appendText(k.buf[:0], v[1:len(v)-1]))
}
