package request

// field is a top-level member of a body that is read.
type field uint8

// The fields that are read. Up to lastOption they change how an engine builds the prompt, and so
// belong to the key of its beginning; up to lastSection they are rendered into it as text, before
// the messages.
const (
	noField field = iota
	fieldChatTemplate
	fieldTemplateArgs
	fieldEffort
	fieldReasoning
	fieldThinking
	fieldOutputConfig
	fieldPreviousResponse
	fieldPreviousMessages
	fieldStoredPrompt
	fieldPromptEmbeds
	fieldMediaArgs
	fieldAdapterPath
	fieldExtraKey
	fieldTools
	fieldFunctions
	fieldDocuments
	fieldModel
	fieldStream
	fieldMaxTokens
	fieldMaxCompletion
	fieldMaxOutput
	fieldN
	fieldUser
	fieldMetadata
	fieldSalt
	fieldContinue
	fieldSystem
	fieldInstructions
	fieldMessages
	fieldPrompt
	fieldInput
	numFields

	lastOption  = fieldExtraKey
	lastSection = fieldDocuments
)

// byAPI is what a name means in the bodies of each API.
type byAPI [Audio + 1]field

// everywhere is the meaning of a name that all APIs share.
func everywhere(f field) byAPI {
	return byAPI{Chat: f, Completions: f, Responses: f, Embeddings: f, Messages: f}
}

// fields is what is read of bodies. What stands here may stand in a body but once: of duplicates
// engines take the last, others on the way perhaps the first.
var fields = map[string]byAPI{
	"model":               everywhere(fieldModel),
	"stream":              everywhere(fieldStream),
	"user":                everywhere(fieldUser),
	"cache_salt":          everywhere(fieldSalt),
	"extra_key":           everywhere(fieldExtraKey),
	"lora_path":           everywhere(fieldAdapterPath),
	"mm_processor_kwargs": everywhere(fieldMediaArgs),

	"messages": {Chat: fieldMessages, Embeddings: fieldMessages, Messages: fieldMessages},
	"prompt":   {Completions: fieldPrompt, Responses: fieldStoredPrompt},
	"input":    {Responses: fieldInput, Embeddings: fieldInput},

	"system":        {Messages: fieldSystem},
	"instructions":  {Responses: fieldInstructions},
	"tools":         {Chat: fieldTools, Responses: fieldTools, Messages: fieldTools},
	"functions":     {Chat: fieldFunctions},
	"documents":     {Chat: fieldDocuments},
	"prompt_embeds": {Completions: fieldPromptEmbeds},

	"previous_response_id":    {Responses: fieldPreviousResponse},
	"previous_input_messages": {Responses: fieldPreviousMessages},

	"chat_template":          {Chat: fieldChatTemplate, Embeddings: fieldChatTemplate},
	"chat_template_kwargs":   {Chat: fieldTemplateArgs, Responses: fieldTemplateArgs, Embeddings: fieldTemplateArgs, Messages: fieldTemplateArgs},
	"continue_final_message": {Chat: fieldContinue},
	"reasoning_effort":       {Chat: fieldEffort},
	"reasoning":              {Responses: fieldReasoning},
	"thinking":               {Messages: fieldThinking},
	"output_config":          {Messages: fieldOutputConfig},

	"max_tokens":            {Chat: fieldMaxTokens, Completions: fieldMaxTokens, Messages: fieldMaxTokens},
	"max_completion_tokens": {Chat: fieldMaxCompletion},
	"max_output_tokens":     {Responses: fieldMaxOutput},
	"n":                     {Chat: fieldN, Completions: fieldN},
	"metadata":              {Messages: fieldMetadata},
}
