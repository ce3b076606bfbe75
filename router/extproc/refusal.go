package extproc

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/router"
	"github.com/presage-router/presage/router/extproc/wire"
)

// ReasonHeader names the response header that tells a client, in one word, why it was refused.
const ReasonHeader = "x-llm-d-request-dropped-reason"

// Reasons of refusals.
const (
	ReasonBadRequest   = "rejected-bad-request"
	ReasonUnknownModel = "rejected-unknown-model"
	ReasonTooLarge     = "rejected-too-large"
	ReasonEncoding     = "rejected-encoding"
	ReasonBodyTimeout  = "rejected-body-timeout"
	ReasonNoEndpoint   = "rejected-no-endpoint"
	ReasonSaturated    = "rejected-saturated"
	ReasonMemory       = "rejected-memory"
	ReasonDeadline     = "rejected-deadline"
	ReasonInternal     = "rejected-internal"
)

// Refusal is implemented by errors of an [Admission] or a policy that know how the client must be
// told. Other errors are our own fault: status 500.
type Refusal interface {
	error
	// Refusal returns the HTTP status, the reason as in the constants above, and after how long it
	// makes sense to try again; 0: not said.
	Refusal() (status int, reason string, retryAfter time.Duration)
}

// refusal is one request refused.
type refusal struct {
	request.Error
	reason string
	retry  time.Duration
}

// refuse turns what went wrong into what the client is told.
func refuse(err error) refusal {
	var known Refusal
	var bad *request.Error
	switch {
	case errors.As(err, &known):
		status, reason, retry := known.Refusal()
		return newRefusal(status, reason, known.Error(), retry)
	case errors.As(err, &bad):
		return refusal{Error: *bad, reason: reasonOf(bad.Status)}
	case errors.Is(err, router.ErrNoEndpoint):
		return newRefusal(http.StatusServiceUnavailable, ReasonNoEndpoint, "no endpoint is ready to serve this request", 0)
	case errors.Is(err, router.ErrUnknownModel):
		r := newRefusal(http.StatusNotFound, ReasonUnknownModel, "the model does not exist here", 0)
		r.Code, r.Param = "model_not_found", "model"
		return r
	case errors.Is(err, router.ErrSaturated):
		return newRefusal(http.StatusTooManyRequests, ReasonSaturated, "all endpoints are saturated; try again later", time.Second)
	case errors.Is(err, context.DeadlineExceeded):
		return pastDeadline()
	}
	return failure()
}

func newRefusal(status int, reason, message string, retry time.Duration) refusal {
	return refusal{Error: request.Error{Status: status, Message: message}, reason: reason, retry: retry}
}

// The refusals that the service itself knows.
func tooLarge(limit int64) refusal {
	return newRefusal(http.StatusRequestEntityTooLarge, ReasonTooLarge, "the request body is larger than "+strconv.FormatInt(limit, 10)+" bytes", 0)
}

func outOfMemory() refusal {
	return newRefusal(http.StatusServiceUnavailable, ReasonMemory, "too many request bodies are being read; try again later", time.Second)
}

func tooSlow() refusal {
	return newRefusal(http.StatusRequestTimeout, ReasonBodyTimeout, "the request body did not arrive in time", 0)
}

func pastDeadline() refusal {
	return newRefusal(http.StatusServiceUnavailable, ReasonDeadline, "no decision was made in time; try again later", time.Second)
}

func failure() refusal {
	return newRefusal(http.StatusInternalServerError, ReasonInternal, "the router failed", 0)
}

// reasonOf is the reason of a request that was refused as it was read.
func reasonOf(status int) string {
	switch status {
	case http.StatusNotFound:
		return ReasonUnknownModel
	case http.StatusRequestEntityTooLarge:
		return ReasonTooLarge
	case http.StatusUnsupportedMediaType:
		return ReasonEncoding
	}
	return ReasonBadRequest
}

// outcome is how operators count the refusal.
func (r *refusal) outcome() Outcome {
	switch {
	case r.reason == ReasonNoEndpoint:
		return NoEndpoint
	case r.Status == http.StatusTooManyRequests || r.reason == ReasonMemory:
		return Shed
	case r.Status < http.StatusInternalServerError:
		return BadRequest
	}
	return Internal
}

// append appends the message that makes the gateway answer with the refusal.
func (r *refusal) append(dst []byte, api request.API) []byte {
	im := wire.Immediate{
		Status:  r.Status,
		Set:     []wire.Header{{Name: "content-type", Value: "application/json"}, {Name: ReasonHeader, Value: r.reason}},
		Body:    r.AppendBody(nil, api),
		Details: r.reason,
	}
	if r.retry > 0 {
		seconds := int((r.retry + time.Second - 1) / time.Second)
		im.Set = append(im.Set, wire.Header{Name: "retry-after", Value: strconv.Itoa(seconds)})
	}
	return wire.AppendImmediate(dst, &im)
}
