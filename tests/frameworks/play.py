"""Runs examples twice with a scripted model, and the kits, in a Python that has their frameworks.

The model reads the thread, answers with the words that it was shown, and ends. All are played in one process,
since frameworks load much that others have loaded: `{"url": …, "plays": {NAME: [ARGUMENT, …]}}` on stdin, and
on stdout what each came to.
"""

import gc
import importlib.util
import json
import os
import re
import sys
import traceback
from pathlib import Path

from pydantic import BaseModel

from postroom_client import Client

EXAMPLES = Path(__file__).parents[2] / "examples" / "frameworks"


def next_step(prompt: str, results: list[str]) -> tuple[str, dict[str, str]] | str:
    """The next tool and its arguments, or the last word."""
    thread_id = re.findall(r"thr_\w+", prompt)[0]
    if not results:
        return "read_thread", {"thread_id": thread_id}
    if len(results) == 1:
        newest = re.findall(r"\[untrusted \w+\]\n(.*?)\n\[end", results[0], re.DOTALL)[-1]
        return "reply_to_thread", {"thread_id": thread_id, "body": f"You wrote: {newest.splitlines()[-1]}"}
    return results[-1]


def openai_model():
    from agents import set_tracing_disabled
    from agents.items import ModelResponse
    from agents.models.interface import Model
    from agents.usage import Usage
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    set_tracing_disabled(True)

    class Scripted(Model):
        async def get_response(self, system_instructions, input, *rest, **options):
            results = [one["output"] for one in input if one.get("type") == "function_call_output"]
            step = next_step(input[0]["content"], results)
            if isinstance(step, str):
                text = ResponseOutputText(annotations=[], text=step, type="output_text")
                output = ResponseOutputMessage(
                    id="m", content=[text], role="assistant", status="completed", type="message"
                )
            else:
                output = ResponseFunctionToolCall(
                    name=step[0],
                    arguments=json.dumps(step[1]),
                    call_id=f"call-{len(results)}",
                    type="function_call",
                )
            return ModelResponse(output=[output], usage=Usage(), response_id=None)

        def stream_response(self, *rest, **options):
            raise NotImplementedError

    return Scripted()


def langchain_model():
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, ToolMessage
    from langchain_core.outputs import ChatGeneration, ChatResult

    class Scripted(BaseChatModel):
        @property
        def _llm_type(self):
            return "scripted"

        def bind_tools(self, tools, **options):
            return self

        def _generate(self, messages, *rest, **options):
            results = [one.content for one in messages if isinstance(one, ToolMessage)]
            prompt = next(one.content for one in messages if one.type == "human")
            step = next_step(prompt, results)
            calls = (
                []
                if isinstance(step, str)
                else [{"name": step[0], "args": step[1], "id": f"c{len(results)}"}]
            )
            message = AIMessage(step if isinstance(step, str) else "", tool_calls=calls)
            return ChatResult(generations=[ChatGeneration(message=message)])

    return Scripted()


def pydantic_ai_model():
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
    from pydantic_ai.models.function import FunctionModel

    def respond(messages, info):
        parts = [part for message in messages for part in message.parts]
        results = [part.content for part in parts if isinstance(part, ToolReturnPart)]
        prompt = next(part.content for part in parts if isinstance(part, UserPromptPart))
        step = next_step(prompt, results)
        return ModelResponse(parts=[TextPart(step) if isinstance(step, str) else ToolCallPart(*step)])

    return FunctionModel(respond)


def llamaindex_model():
    from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata, MessageRole
    from llama_index.core.llms.function_calling import FunctionCallingLLM
    from llama_index.core.llms.llm import ToolSelection

    class Scripted(FunctionCallingLLM):
        @property
        def metadata(self):
            return LLMMetadata(is_function_calling_model=True)

        async def achat_with_tools(self, tools, user_msg=None, chat_history=None, **options):
            results = [one.content for one in chat_history if one.role == MessageRole.TOOL]
            prompt = next(one.content for one in chat_history if one.role == MessageRole.USER)
            step = next_step(prompt, results)
            text = step if isinstance(step, str) else ""
            calls = (
                []
                if isinstance(step, str)
                else [ToolSelection(tool_id=f"c{len(results)}", tool_name=step[0], tool_kwargs=step[1])]
            )
            message = ChatMessage(
                role=MessageRole.ASSISTANT, content=text, additional_kwargs={"tool_calls": calls}
            )
            return ChatResponse(message=message)

        def get_tool_calls_from_response(self, response, error_on_no_tool_call=True, **options):
            return response.message.additional_kwargs["tool_calls"]

        def _prepare_chat_with_tools(self, *rest, **options):
            raise NotImplementedError

        chat = complete = stream_chat = stream_complete = _prepare_chat_with_tools
        achat = acomplete = astream_chat = astream_complete = _prepare_chat_with_tools

    return Scripted()


def crewai_model():
    from crewai import BaseLLM

    class Scripted(BaseLLM):
        def call(self, messages, *rest, **options):
            said = [one["content"] or "" for one in messages]
            results = [one.partition("Observation: ")[2] for one in said if one.startswith("Thought: ")]
            prompt = next(one for one in said if "thr_" in one)
            step = next_step(prompt, results)
            if isinstance(step, str):
                return f"Thought: Done.\nFinal Answer: {step}"
            return f"Thought: Next.\nAction: {step[0]}\nAction Input: {json.dumps(step[1])}"

        def supports_function_calling(self):
            return False

    return Scripted(model="scripted")


MODELS = {
    "with_openai_agents": openai_model,
    "with_langchain": langchain_model,
    "with_pydantic_ai": pydantic_ai_model,
    "with_llamaindex": llamaindex_model,
    "with_crewai": crewai_model,
}


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def play_example(name, base_url, key, inbox_id):
    example = load(EXAMPLES / f"{name}.py")
    with Client(key, base_url) as client:
        agent = example.build(client, inbox_id, MODELS[name]())
        return [example.answer_all(client, inbox_id, agent) for _ in range(2)]


def play_toolkits(base_url, key):
    return load(Path(__file__).with_name("play_toolkits.py")).use_all(base_url, key)


def play(name, *arguments):
    """What fails is told, and the next one is played."""
    try:
        return play_toolkits(*arguments) if name == "toolkits" else play_example(name, *arguments)
    except Exception:
        return traceback.format_exc()


def load_less():
    """No play uses most of the types that frameworks describe, nor what recognises the parts of a page."""
    BaseModel.model_config["defer_build"] = True
    sys.modules["pymupdf.layout"] = None
    gc.disable()  # nothing of what is loaded goes again


def main():
    load_less()
    given = json.load(sys.stdin)
    found = {name: play(name, given["url"], *arguments) for name, arguments in given["plays"].items()}
    print(json.dumps(found), flush=True)
    os._exit(0)  # to free what was loaded takes longer than most plays


if __name__ == "__main__":
    main()
