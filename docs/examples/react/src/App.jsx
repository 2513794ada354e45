// The list of sessions, and one of them as a conversation that grows.
import { useChat } from '@ai-sdk/react';
import { DefaultChatTransport } from 'ai';
import { useEffect, useState } from 'react';
import { MessagePart } from './MessagePart.jsx';
import { ask, headers, link, place } from './server.js';

export function App() {
  const [at, setAt] = useState(place);
  useEffect(() => {
    const moved = () => setAt(place());
    window.addEventListener('hashchange', moved);
    return () => window.removeEventListener('hashchange', moved);
  }, []);
  if (!at.token) return <Connect />;
  return at.session ? <Session key={at.session} id={at.session} /> : <Sessions />;
}

/** Asks for what `scrollback serve` printed. */
function Connect() {
  const enter = (form) => {
    const url = new URL(form.get('address'));
    window.location.hash = link({ server: url.origin, token: url.searchParams.get('token') ?? '' });
  };
  return (
    <form action={enter}>
      <label>
        The address that <code>scrollback serve</code> printed
        <input name="address" type="url" required placeholder="http://127.0.0.1:4747/?token=…" />
      </label>
      <button>Open</button>
    </form>
  );
}

function Sessions() {
  const [found, problem] = useAnswer('/api/v1/sessions?limit=50');
  if (!found) return <Waiting problem={problem} />;
  return (
    <ul className="sessions">
      {found.items.map((row) => (
        <li key={`${row.dialect}:${row.id}`}>
          <a href={link({ session: `${row.dialect}:${row.id}` })}>{row.title}</a> <small>{row.dialect}</small>
        </li>
      ))}
    </ul>
  );
}

function Session({ id }) {
  const [stored, problem] = useAnswer(`/api/chat/${encodeURIComponent(id)}/messages`);
  return stored ? <Conversation id={id} stored={stored} /> : <Waiting problem={problem} />;
}

/** Everything that `useChat` needs: the stored messages, and where the running answer is. */
function Conversation({ id, stored }) {
  const { messages, setMessages, status, error } = useChat({
    id,
    messages: stored,
    resume: true,
    transport: new DefaultChatTransport({ api: `${place().server}/api/chat`, headers }),
    onData: (part) => {
      if (part.type === 'data-message')
        setMessages((all) => [...all.filter((one) => one.id !== part.data.id), part.data]);
      if (part.type === 'data-removed')
        setMessages((all) => all.filter((one) => !part.data.ids.includes(one.id)));
    },
  });
  return (
    <main data-status={status}>
      <a href={link({ session: '' })}>All sessions</a>
      {messages.map((message) => (
        <article key={message.id} id={message.id} className={message.role}>
          <h2>{message.role}</h2>
          {message.parts.map((part, at) => (
            <MessagePart key={at} part={part} />
          ))}
        </article>
      ))}
      <p aria-live="polite">{status === 'streaming' ? 'The agent is answering…' : ''}</p>
      {error && <p role="alert">{error.message}</p>}
    </main>
  );
}

function Waiting({ problem }) {
  return problem ? <p role="alert">{problem.message}</p> : <p>One moment…</p>;
}

/** What the server answers, or why it does not. */
function useAnswer(path) {
  const [answer, setAnswer] = useState([]);
  useEffect(() => {
    let isShown = true;
    const tell = (next) => isShown && setAnswer(next);
    ask(path).then((found) => tell([found]), (problem) => tell([undefined, problem]));
    return () => (isShown = false);
  }, [path]);
  return answer;
}
