// One component for each type of part that a UIMessage has. Texts are shown as text: nothing of a session becomes HTML.
import { isToolUIPart } from 'ai';
import { useState } from 'react';

export function MessagePart({ part }) {
  if (isToolUIPart(part)) return <ToolCard call={part} />;
  switch (part.type) {
    case 'text':
      return <p className="text">{part.text}</p>;
    case 'reasoning':
      return <Reasoning text={part.text} isOpen={part.state === 'streaming'} />;
    case 'file':
      return <File file={part} />;
    case 'source-url':
      return <Source title={part.title ?? part.url} url={part.url} />;
    case 'source-document':
      return <Source title={part.title ?? part.filename ?? part.mediaType} />;
    case 'step-start':
      return <hr />;
    default:
      return part.type.startsWith('data-') ? <Note part={part} /> : null;
  }
}

/** Thinking, folded unless it is being written. */
function Reasoning({ text, isOpen }) {
  if (!text) return null;
  return (
    <details className="reasoning" open={isOpen}>
      <summary>Thinking</summary>
      <p className="text">{text}</p>
    </details>
  );
}

/** How a call is called in each of its states. */
const STATES = {
  'input-streaming': 'is being written',
  'input-available': 'runs',
  'approval-requested': 'waits for you',
  'approval-responded': 'was answered',
  'output-available': 'done',
  'output-error': 'failed',
  'output-denied': 'denied',
};

/** A call: its name and state, and behind them what went in and came out. */
function ToolCard({ call }) {
  const name = call.title ?? call.toolName ?? call.type.replace(/^tool-/, '');
  return (
    <details className={`tool ${call.state}`}>
      <summary>
        {name} <small>{STATES[call.state] ?? call.state}</small>
      </summary>
      {call.input !== undefined && <pre>{shown(call.input)}</pre>}
      {call.output !== undefined && <pre className="output">{shown(call.output)}</pre>}
      {call.errorText && <pre className="output">{call.errorText}</pre>}
    </details>
  );
}

/** A picture, and a link to anything else, also to a picture that the server shows only to its own pages. */
function File({ file }) {
  const [isShown, setShown] = useState(file.mediaType.startsWith('image/'));
  const name = file.filename ?? file.mediaType;
  const picture = <img src={file.url} alt={name} onError={() => setShown(false)} />;
  return <figure>{isShown ? picture : <Source title={name} url={file.url} />}</figure>;
}

/** Where something is from. Only addresses of the web are links. */
function Source({ title, url }) {
  const isLink = /^https?:\/\//.test(url ?? '');
  return <p className="source">{isLink ? <a href={url} rel="noreferrer" target="_blank">{title}</a> : title}</p>;
}

/** What only the agent's own format knows, such as a compaction. */
function Note({ part }) {
  return (
    <details className="note">
      <summary>{part.type.slice('data-'.length)}</summary>
      <pre>{shown(part.data)}</pre>
    </details>
  );
}

function shown(value) {
  return typeof value === 'string' ? value : JSON.stringify(value, null, 2);
}
