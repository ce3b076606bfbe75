package request

import "bytes"

// paths are the ends of the paths whose bodies are read. Whatever stands before them is a gateway's
// prefix, and what follows is another API, except for vLLM's /render, which takes the same body.
var paths = [...]struct {
	path string
	api  API
}{
	{"/v1/chat/completions", Chat},
	{"/v1/completions", Completions},
	{"/v1/responses", Responses},
	{"/v1/embeddings", Embeddings},
	{"/v1/messages", Messages},
}

const audioPath = "/v1/audio/"

// maxPath bounds what is kept of a path.
const maxPath = 1024

// route splits the query off and finds the API of a path. A slash at the end does not count; case
// does, as for engines. Paths that are no API, count_tokens and audio in JSON among them, are
// [Opaque], which is no error.
func route(target []byte) (path string, api API) {
	raw, _, _ := bytes.Cut(target, []byte("?"))
	for _, known := range paths {
		if string(raw) == known.path {
			return known.path, known.api
		}
	}
	trimmed := bytes.TrimSuffix(raw, []byte("/"))
	trimmed = bytes.TrimSuffix(trimmed, []byte("/render"))
	for _, known := range paths {
		if len(trimmed) >= len(known.path) && string(trimmed[len(trimmed)-len(known.path):]) == known.path {
			return clip(raw), known.api
		}
	}
	if i := bytes.LastIndex(raw, []byte(audioPath)); i >= 0 && bytes.IndexByte(raw[i+len(audioPath):], '/') < 0 {
		return clip(raw), Audio
	}
	return clip(raw), Opaque
}

func clip(path []byte) string { return string(path[:min(len(path), maxPath)]) }
