package request

// field is a top-level member of a body that is read.
type field uint8

// The fields that are read. Up to lastOption they change how an engine builds the prompt, and so
// belong to the key of its beginning; up to lastSection they are rendered into it as text, before
// the messages.
const (
	fieldChatTemplate field = iota
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
	noField     = numFields
)

// fieldOf returns the field of a name in bodies of an API. Duplicates of what is read are refused:
// engines take the last of them, others on the way may take the first.
func fieldOf(api API, name []byte) field {
	switch string(name) {
	case "model":
		return fieldModel
	case "stream":
		return fieldStream
	case "user":
		return fieldUser
	case "cache_salt":
		return fieldSalt
	case "extra_key":
		return fieldExtraKey
	case "lora_path":
		return fieldAdapterPath
	case "mm_processor_kwargs":
		return fieldMediaArgs
	}
	switch api {
	case Chat:
		return chatField(name)
	case Completions:
		return completionField(name)
	case Responses:
		return responsesField(name)
	case Embeddings:
		return embeddingField(name)
	case Messages:
		return messagesField(name)
	}
	return noField
}

func chatField(name []byte) field {
	switch string(name) {
	case "messages":
		return fieldMessages
	case "tools":
		return fieldTools
	case "functions":
		return fieldFunctions
	case "documents":
		return fieldDocuments
	case "max_tokens":
		return fieldMaxTokens
	case "max_completion_tokens":
		return fieldMaxCompletion
	case "n":
		return fieldN
	case "chat_template":
		return fieldChatTemplate
	case "chat_template_kwargs":
		return fieldTemplateArgs
	case "reasoning_effort":
		return fieldEffort
	case "continue_final_message":
		return fieldContinue
	}
	return noField
}

func completionField(name []byte) field {
	switch string(name) {
	case "prompt":
		return fieldPrompt
	case "prompt_embeds":
		return fieldPromptEmbeds
	case "max_tokens":
		return fieldMaxTokens
	case "n":
		return fieldN
	}
	return noField
}

func responsesField(name []byte) field {
	switch string(name) {
	case "input":
		return fieldInput
	case "instructions":
		return fieldInstructions
	case "tools":
		return fieldTools
	case "max_output_tokens":
		return fieldMaxOutput
	case "previous_response_id":
		return fieldPreviousResponse
	case "previous_input_messages":
		return fieldPreviousMessages
	case "prompt":
		return fieldStoredPrompt
	case "reasoning":
		return fieldReasoning
	case "chat_template_kwargs":
		return fieldTemplateArgs
	}
	return noField
}

func embeddingField(name []byte) field {
	switch string(name) {
	case "input":
		return fieldInput
	case "messages":
		return fieldMessages
	case "chat_template":
		return fieldChatTemplate
	case "chat_template_kwargs":
		return fieldTemplateArgs
	}
	return noField
}

func messagesField(name []byte) field {
	switch string(name) {
	case "messages":
		return fieldMessages
	case "system":
		return fieldSystem
	case "tools":
		return fieldTools
	case "max_tokens":
		return fieldMaxTokens
	case "metadata":
		return fieldMetadata
	case "thinking":
		return fieldThinking
	case "output_config":
		return fieldOutputConfig
	case "chat_template_kwargs":
		return fieldTemplateArgs
	}
	return noField
}

// String returns the field's name, where the path of an error begins.
func (f field) String() string {
	switch f {
	case fieldMessages:
		return "messages"
	case fieldSystem:
		return "system"
	case fieldPrompt:
		return "prompt"
	case fieldInput:
		return "input"
	case fieldInstructions:
		return "instructions"
	}
	return "body"
}
