// The console on an agent's page: messages go directly from this browser to the agent. Everything that the agent sends
// is treated as hostile: it is shown as text, never as markup, and is bounded. Credentials stay in the fields of the
// form. The page chooses the interfaces and their order, and its security policy allows this script to call only their
// origins.

/** The limits. The console rejects or shortens what exceeds a limit, and says so. */
const LIMITS = {
  /** Characters of one event, or of a whole answer that is not a stream. */
  event: 4 * 1024 * 1024,
  /** Bytes of one response. */
  response: 32 * 1024 * 1024,
  /** Events of one stream. */
  events: 10000,
  /** Characters shown of one text. */
  text: 50000,
  /** Entries of the conversation that stay on the page; an answer is one entry. */
  turns: 200,
  /** Lines of one answer: texts, files and artifacts. */
  lines: 500,
  /** Entries of the traffic, and characters of each. */
  traffic: 200,
  trafficText: 4000,
  /** Characters of the agent's identifiers of tasks and conversations. */
  id: 1000,
  /** Bytes of the files of one message. */
  files: 5 * 1024 * 1024,
  /** Maximum number of times that a broken stream is resumed, and that an unfinished task is polled. */
  resumes: 5,
  polls: 300,
};

const root = document.getElementById("console");
const data = JSON.parse(root.dataset.console);
const part = (name) => document.getElementById(`console-${name}`);
const [form, log, wire, status] = ["form", "log", "wire", "status"].map(part);

/** The identifiers of the conversation, and the exchange that is under way. */
let conversation = {};
let underWay = null;

/* Texts */

const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\ufff0-\ufffb]|[\u{e0000}-\u{e0fff}]/gu;

/** Makes a text of the agent safe to show: shortens it, and writes out invisible characters. */
function shown(text, limit = LIMITS.text) {
  const whole = String(text);
  const more = whole.length - limit;
  const visible = whole
    .slice(0, limit)
    .replaceAll("\r\n", "\n")
    .replace(HIDDEN, (hidden) => `⟦U+${hidden.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟧`);
  return more > 0 ? `${visible}… (${more} more characters)` : visible;
}

function element(name, className, text) {
  const made = document.createElement(name);
  made.className = className;
  if (text !== undefined) {
    made.textContent = text;
    made.dir = "auto";
  }
  return made;
}

/** What the person sent last, which the command says too. */
let lastText = "";

/** The command for the last message, else for an example. Its last word is the message, after the agent's id. */
function commandForLastText() {
  // Only a message that begins with a dash needs two dashes before the id.
  if (lastText.trim() === "" || lastText.startsWith("-")) {
    return data.command;
  }
  const word = `'${lastText.replaceAll("'", "'\\''")}'`;
  return data.command.replace(/([0-9a-f-]{36}'?) [^]*$/, (whole, agent) => `${agent} ${word}`);
}

/** An element with the command to copy. */
function commandBlock() {
  const block = element("div", "code");
  const pre = document.createElement("pre");
  pre.tabIndex = 0;
  pre.append(element("code", "", commandForLastText()));
  block.append(pre);
  if (navigator.clipboard && typeof addCopyButton === "function") {
    addCopyButton(block);
  }
  return block;
}

/* Credentials and traffic */

const secretFields = () => [...root.querySelectorAll("input[data-kind]")].filter((field) => field.value !== "");

/** The typed credentials, as headers and query parameters. */
function credentials() {
  const found = { headers: [], query: [] };
  for (const field of secretFields()) {
    const { kind } = field.dataset;
    const name = data.names[Number(field.id.split("-").pop()) - 1];
    const value = field.value.trim();
    if (kind === "bearer") {
      found.headers.push(["Authorization", `Bearer ${value}`]);
    } else if (kind === "basic") {
      const user = field.closest("form").querySelector(`#${field.id.replace("field", "user")}`).value;
      found.headers.push(["Authorization", `Basic ${toBase64(new TextEncoder().encode(`${user}:${field.value}`))}`]);
    } else if (kind === "authorization") {
      found.headers.push(["Authorization", value]);
    } else if (kind === "header") {
      found.headers.push([name, value]);
    } else if (kind === "query") {
      found.query.push([name, value]);
    } else if (part("header").value.trim()) {
      found.headers.push([part("header").value.trim(), value]);
    }
  }
  return found;
}

/** Masks the credentials in a text; an agent may repeat them too. */
function masked(text) {
  let out = text;
  const { headers, query } = credentials();
  const values = [...headers.map(([, value]) => value), ...query.map(([, value]) => value)];
  const typed = secretFields().map((field) => field.value);
  const secrets = [...values, ...typed].flatMap((secret) => [secret, encodeURIComponent(secret)]);
  for (const secret of secrets.sort((one, other) => other.length - one.length)) {
    if (secret.length > 3) {
      out = out.replaceAll(secret, "•••");
    }
  }
  return out;
}

/** Adds an entry to the traffic, and removes the oldest ones beyond the limit. */
function wired(direction, text) {
  const entry = element("pre", direction, shown(masked(text), LIMITS.trafficText));
  wire.append(entry);
  while (wire.children.length > LIMITS.traffic) {
    wire.firstChild.remove();
  }
}

/* Failures */

/** A failure to get an answer, with the action to take. `kind` is the class of the failure. */
class Failure extends Error {
  constructor(kind, message) {
    super(message);
    this.kind = kind;
  }
}

/** An error that the agent reports; a bare one is an HTTP status without an error of the protocol. */
class Refusal extends Error {
  constructor(code, message, details, isBare = false) {
    super(`The agent rejected the request (${code}): ${message}`);
    this.code = code;
    this.isBare = isBare;
    this.reasons = Array.isArray(details) ? details.map((detail) => detail?.reason) : [];
  }

  /** Whether the agent says that it does not stream, so that it has not accepted the message. */
  get saysNoStream() {
    return [-32601, -32004, 404, 405, 501].includes(this.code) || this.reasons.includes("UNSUPPORTED_OPERATION");
  }

  /** Whether the agent does not know the method, path or version, so that it has not accepted the message. */
  get saysUnknown() {
    const isNoPath = this.isBare && [404, 405, 501].includes(this.code);
    return isNoPath || [-32601, -32009].includes(this.code) || this.reasons.includes("VERSION_NOT_SUPPORTED");
  }
}

const isLoopback = (host) => host === "localhost" || host.endsWith(".localhost") || /^127(\.\d+){3}$/.test(host);
const isLocal = (host) =>
  isLoopback(host) || /^(10|192\.168|169\.254|172\.(1[6-9]|2\d|3[01]))\.[\d.]+$/.test(host) || host.endsWith(".local");

/** Whether the browser blocks an address because the page uses https and the agent plain http. */
const isMixed = (url) => location.protocol === "https:" && url.protocol === "http:" && !isLoopback(url.hostname);
const mixed = () =>
  new Failure("mixed", "This page uses https and the agent plain http: browsers block this as mixed content.");

const violations = new Set();
document.addEventListener("securitypolicyviolation", ({ blockedURI }) => violations.add(blockedURI));

/** Whether the user or the administrator of this browser blocks this page from the local network. */
async function isKeptFromLocalNetwork(url) {
  const states = [];
  for (const name of ["local-network-access", "local-network", "loopback-network"]) {
    try {
      states.push((await navigator.permissions.query({ name })).state);
    } catch {
      // A browser that does not know the permission does not ask for it.
    }
  }
  const asks = isLocal(url.hostname) && !isLocal(location.hostname);
  return states.includes("denied") || (asks && states.includes("prompt"));
}

/** Finds out why a request got no response that this page may read; browsers do not say. */
async function unreachable(route) {
  const url = new URL(route.url);
  if ([...violations].some((blocked) => blocked.startsWith(url.origin))) {
    return new Failure("policy", `The security policy of this page does not allow calls to ${url.origin}.`);
  }
  try {
    // A browser reports whether there is a response even if the page may not read it. The probe sends neither message
    // nor credentials.
    const probe = { mode: "no-cors", credentials: "omit", cache: "no-store", referrerPolicy: "no-referrer" };
    await fetch(url.origin + url.pathname, { ...probe, signal: AbortSignal.timeout(10000) });
    return new Failure(
      "cors",
      `The agent responds, but this page may not read its answers: the agent does not allow cross-origin requests (CORS) from ${location.origin}.`,
    );
  } catch {
    if (await isKeptFromLocalNetwork(url)) {
      const message = `This browser does not let this page reach the local network, where ${url.host} may be. Allow this in the settings of the page.`;
      return new Failure("local-network", message);
    }
    return isMixed(url)
      ? mixed()
      : new Failure("down", `Nothing answers at ${url.origin}: the agent is down, or this browser cannot reach it.`);
  }
}

/* Protocol: the operations in the forms of each version */

const toBase64 = (bytes) => {
  let binary = "";
  for (let at = 0; at < bytes.length; at += 32768) {
    binary += String.fromCharCode(...bytes.subarray(at, at + 32768));
  }
  return btoa(binary);
};

/** The forms of 1.0 in every binding. */
const v1 = {
  version: "1.0",
  methods: { send: "SendMessage", stream: "SendStreamingMessage", get: "GetTask", cancel: "CancelTask", subscribe: "SubscribeToTask" },
  below: [],
  part: ({ text, file }) => (file ? { raw: file.bytes, filename: file.name, mediaType: file.type } : { text }),
  params: (message, parts, tenant) => ({ message: { ...message, role: "ROLE_USER", parts }, ...(tenant && { tenant }) }),
};
/** The forms of 0.2 and 0.3 over JSON-RPC. */
const v0 = {
  methods: { send: "message/send", stream: "message/stream", get: "tasks/get", cancel: "tasks/cancel", subscribe: "tasks/resubscribe" },
  part: ({ text, file }) =>
    file
      ? { kind: "file", file: { bytes: file.bytes, name: file.name, mimeType: file.type } }
      : { kind: "text", text },
  params: (message, parts) => ({
    message: { kind: "message", ...message, role: "user", parts },
    configuration: { acceptedOutputModes: ["text/plain", "text", "application/json"], blocking: true },
  }),
};
/** The forms of 0.3 over HTTP+JSON, which are those of its protobuf definition. */
const v0Rest = {
  below: ["v1"],
  part: ({ text, file }) =>
    file ? { file: { fileWithBytes: file.bytes, name: file.name, mimeType: file.type } } : { text },
  params: (message, content) => ({
    message: { ...message, role: "ROLE_USER", content },
    configuration: { acceptedOutputModes: ["text/plain", "application/json"], blocking: true },
  }),
};

/** Renames the members of a value with `rename`; data, metadata and values below the depth stay unchanged. */
function renamed(value, rename, depth = 10) {
  if (typeof value !== "object" || value === null || depth === 0) {
    return value;
  }
  if (Array.isArray(value)) {
    return value.map((one) => renamed(one, rename, depth - 1));
  }
  const entries = Object.entries(value).map(([name, inner]) => {
    const isOpaque = name === "data" || name === "metadata";
    return [rename(name), isOpaque ? inner : renamed(inner, rename, depth - 1)];
  });
  return Object.fromEntries(entries);
}

const inSnakeCase = (value) => renamed(value, (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`));
const inCamelCase = (value) => renamed(value, (name) => name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase()));

/** The forms of 1.0 as the a2a-protocol skill describes them: members in snake_case, and other methods and paths. */
const skill = {
  version: "1.0",
  methods: Object.fromEntries(
    Object.entries(v1.methods).map(([name, method]) => [name, `a2a.${method[0].toLowerCase()}${method.slice(1)}`]),
  ),
  below: [],
  part: v1.part,
  params: (message, parts, tenant) => inSnakeCase({ ...v1.params(message, parts, tenant), message: { ...message, role: "user", parts } }),
};
const dialects = {
  "1.0-jsonrpc": { forms: v1, rpc: true, other: "skill-jsonrpc" },
  "1.0-rest": { forms: v1, rpc: false, other: "skill-rest" },
  "skill-jsonrpc": { forms: skill, rpc: true, other: "1.0-jsonrpc" },
  "skill-rest": { forms: skill, rpc: false, other: "1.0-rest" },
  "0.3-jsonrpc": { forms: v0, rpc: true },
  "0.3-rest": { forms: v0Rest, rpc: false },
};

/** The address of an operation over HTTP+JSON, with the query of the interface. */
function addressBelow(route, segments) {
  const url = new URL(route.url);
  const tenants = dialects[route.dialect].forms === skill ? ["tenants"] : [];
  const tenant = route.tenant ? [...tenants, route.tenant] : [];
  const escaped = [...tenant, ...segments].map((segment) => {
    if (segment === "." || segment === "..") {
      throw new Failure("address", "An identifier from the agent would change the path of the request.");
    }
    return encodeURIComponent(segment).replaceAll("%3A", ":");
  });
  url.pathname = [url.pathname.replace(/\/$/, ""), ...escaped].join("/");
  return url;
}

/** The request of an operation: `argument` is a message, or the identifier of a task. */
function requestOf(route, operation, argument) {
  const { forms, rpc } = dialects[route.dialect];
  const isMessage = operation === "send" || operation === "stream";
  const tenant = rpc ? route.tenant : null;
  const params = isMessage
    ? forms.params(argument.message, argument.parts.map(forms.part), tenant)
    : { id: argument, ...(forms.version && tenant && { tenant }) };
  const streams = operation === "stream" || operation === "subscribe";
  const headers = { Accept: streams ? "text/event-stream, application/json" : "application/json" };
  // The skill puts the version in the body of JSON-RPC, so its agents need not allow pages to send the header.
  if (forms.version && !(rpc && forms === skill)) {
    headers["A2A-Version"] = forms.version;
  }
  if (rpc) {
    headers["Content-Type"] = "application/json";
    const all = forms === skill ? { ...params, "a2a-version": forms.version } : params;
    const body = { jsonrpc: "2.0", id: 1, method: forms.methods[operation], params: all };
    return { method: "POST", url: new URL(route.url), headers, body };
  }
  const action = { get: "", cancel: ":cancel", subscribe: ":subscribe" }[operation];
  const names = forms === skill ? { send: "messages", stream: "messages:stream" } : { send: "message:send", stream: "message:stream" };
  const segments = isMessage ? [names[operation]] : ["tasks", argument + action];
  const url = addressBelow(route, [...forms.below, ...segments]);
  if (operation === "get" || (operation === "subscribe" && forms !== skill)) {
    return { method: "GET", url, headers };
  }
  headers["Content-Type"] = "application/json";
  return { method: "POST", url, headers, body: isMessage ? params : {} };
}

/** Sends a request with the credentials, only to the origin of the chosen interface. */
async function send(route, operation, argument, signal) {
  const { method, url, headers, body } = requestOf(route, operation, argument);
  if (url.origin !== route.origin) {
    throw new Failure("address", "The address does not belong to the chosen interface.");
  }
  // Some browsers allow https pages to call plain http on the local network, if the user permits it.
  if (isMixed(url) && !isLocal(url.hostname)) {
    throw mixed();
  }
  const { headers: secret, query } = credentials();
  const address = [url.href, ...query.map(([name]) => `with ${name}=••• in the query`)].join(" ");
  query.forEach(([name, value]) => url.searchParams.append(name, value));
  const sent = new Headers(headers);
  for (const [name, value] of secret) {
    try {
      sent.set(name, value);
    } catch {
      throw new Failure("header", `The header ${shown(name, 100)} has a name or a value that cannot be sent.`);
    }
    if (!sent.has(name)) {
      throw new Failure("header", `Browsers do not allow pages to set the header ${shown(name, 100)}.`);
    }
  }
  const text = body && JSON.stringify(body);
  const lines = [...sent].map(([name, value]) => {
    const isSecret = secret.some(([known]) => known.toLowerCase() === name);
    return `${name}: ${isSecret ? "•••" : value}`;
  });
  wired("out", [`${method} ${address}`, ...lines, ...(text ? ["", text] : [])].join("\n"));
  const options = { method, headers: sent, body: text, signal, mode: "cors", credentials: "omit" };
  let response;
  try {
    response = await fetch(url, { ...options, cache: "no-store", redirect: "manual", referrerPolicy: "no-referrer" });
  } catch (error) {
    throw error instanceof TypeError ? await unreachable(route) : error;
  }
  if (response.type === "opaqueredirect") {
    throw new Failure("redirect", "The agent redirects to another address, which the console does not follow.");
  }
  wired("in", `${response.status} ${response.headers.get("content-type") ?? ""}`);
  return response;
}

/** Reads the text of a response piece by piece, within the limit. */
async function* texts(response) {
  const decoder = new TextDecoder();
  const reader = response.body.getReader();
  let left = LIMITS.response;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      left -= value?.length ?? 0;
      if (left < 0) {
        throw new Failure("size", `The answer has more than ${LIMITS.response / 1024 / 1024} MiB; the rest was not read.`);
      }
      yield decoder.decode(value, { stream: !done });
      if (done) {
        return;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

const tooLong = () => new Failure("size", `One event has more than ${LIMITS.event / 1024 / 1024} MiB of text; it was not read.`);

/** The whole text of a response. */
async function wholeText(response) {
  const pieces = [];
  let length = 0;
  for await (const piece of texts(response)) {
    pieces.push(piece);
    length += piece.length;
    if (length > LIMITS.event) {
      throw tooLong();
    }
  }
  const text = pieces.join("");
  wired("in", text);
  return text;
}

/** The data of the events of a response in the format `text/event-stream`. An event must end with an empty line. */
async function* events(response) {
  let pending = "";
  let searched = 0;
  let lines = [];
  let length = 0;
  let afterReturn = false;
  for await (const piece of texts(response)) {
    pending += afterReturn && piece.startsWith("\n") ? piece.slice(1) : piece;
    afterReturn = piece === "" ? afterReturn : false;
    for (;;) {
      const at = pending.slice(searched).search(/[\r\n]/);
      if (length + (at < 0 ? pending.length : searched + at) > LIMITS.event + 8) {
        throw tooLong();
      }
      if (at < 0) {
        searched = pending.length;
        break;
      }
      const end = searched + at;
      const line = pending.slice(0, end);
      const isPair = pending.startsWith("\r\n", end);
      afterReturn = pending[end] === "\r" && end + 1 === pending.length;
      pending = pending.slice(end + (isPair ? 2 : 1));
      searched = 0;
      if (line === "" && lines.length > 0) {
        yield lines.join("\n");
        lines = [];
        length = 0;
      } else if (line.startsWith("data:")) {
        const text = line.slice(line[5] === " " ? 6 : 5);
        lines.push(text);
        length += text.length;
      }
    }
  }
}

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    throw new Failure("answer", `The agent sent an answer that is not JSON: ${shown(text, 200)}`);
  }
}

/** The result in a document of the agent: as it is over HTTP+JSON, in an envelope over JSON-RPC. */
function resultIn(route, document) {
  const { forms, rpc } = dialects[route.dialect];
  if (isObject(document) && isObject(document.error)) {
    const { code, message, data: details, details: restDetails } = document.error;
    const number = typeof code === "number" ? code : 0;
    throw new Refusal(number, shown(message ?? "no message", 500), restDetails ?? details);
  }
  const id = rpc && isObject(document) ? (document.id ?? 1) : 1;
  if (String(id) !== "1") {
    throw new Failure("answer", `The agent answered call ${shown(id, 50)} instead of call 1.`);
  }
  const result = rpc && isObject(document) ? document.result : document;
  if (!isObject(result)) {
    throw new Failure("answer", `The agent sent something that is not an answer: ${shown(JSON.stringify(document), 200)}`);
  }
  return forms === skill ? inCamelCase(result) : result;
}

/** The result in a response that is not a stream. */
async function documentOf(route, response) {
  const text = await wholeText(response);
  if (response.ok) {
    return resultIn(route, parsed(text));
  }
  let document;
  try {
    document = JSON.parse(text);
  } catch {
    // An error that is not a document of the protocol is shown as received.
  }
  if (isObject(document) && isObject(document.error)) {
    resultIn(route, document);
  }
  const hint = { 401: " It asks for credentials.", 403: " It rejects these credentials.", 429: " It gets too many requests: wait, then send again." };
  const said = text.trim() ? `: ${shown(text.trim(), 300)}` : "";
  throw new Refusal(response.status, `HTTP status ${response.status}${said}.${hint[response.status] ?? ""}`, undefined, true);
}

/* Answers of the agent, in one form for all versions */

const stateOf = (state) => {
  const plain = String(state ?? "unknown").replace(/^TASK_STATE_/, "").toLowerCase().replaceAll("_", "-");
  return shown({ cancelled: "canceled", created: "submitted" }[plain] ?? plain, 40);
};
const isDone = (state) => ["completed", "failed", "canceled", "rejected"].includes(state);
const isWaiting = (state) => ["input-required", "auth-required"].includes(state);

/** The kind of an event and the object with its members, by wrapper (1.0), by `kind` (0.2, 0.3) or by its members. */
function formOf(event) {
  const kinds = { task: "task", message: "message", "status-update": "status", "artifact-update": "artifact" };
  if (Object.hasOwn(kinds, event.kind)) {
    return [kinds[event.kind], event];
  }
  const wrappers = { task: "task", message: "message", statusUpdate: "status", artifactUpdate: "artifact" };
  for (const [name, kind] of Object.entries(wrappers)) {
    if (isObject(event[name])) {
      return [kind, event[name]];
    }
  }
  if (isObject(event.status)) {
    return [event.taskId === undefined ? "task" : "status", event];
  }
  if (isObject(event.artifact)) {
    return ["artifact", event];
  }
  if (Array.isArray(event.parts) || Array.isArray(event.content)) {
    return ["message", event];
  }
  throw new Failure("answer", `The agent sent something that is not an answer: ${shown(JSON.stringify(event), 200)}`);
}

const partsOf = (holder) => [holder?.parts, holder?.content].find(Array.isArray)?.filter(isObject) ?? [];

/** A file name without folders and hidden characters. */
function safeName(name) {
  const last = String(name ?? "").split(/[/\\]/).pop();
  const plain = last.replace(HIDDEN, "").replace(/[<>:"|?*\u0000-\u001f]/g, "_").replace(/^[.\s]+|[.\s]+$/g, "");
  return plain.slice(0, 100) || "file";
}

function fileLine(bytes, name, type) {
  let binary;
  try {
    binary = atob(bytes.replaceAll("-", "+").replaceAll("_", "/"));
  } catch {
    return element("p", "file", `${shown(name ?? "A file", 100)}: its content is not base64, so it cannot be saved.`);
  }
  // Never the media type that the agent names: the file must not open as a page of this origin.
  const content = new Blob([Uint8Array.from(binary, (byte) => byte.charCodeAt(0))], { type: "application/octet-stream" });
  const line = element("p", "file");
  const link = element("a", "", safeName(name));
  link.download = safeName(name);
  link.href = URL.createObjectURL(content);
  line.append("File ", link, ` (${type ? `${shown(type, 100)}, ` : ""}${binary.length} bytes)`);
  return line;
}

function linkLine(address, name) {
  const line = element("p", "file");
  line.append(`File ${name ? `${shown(name, 100)} ` : ""}at `);
  const isWeb = /^https?:\/\//i.test(address) && URL.canParse(address) && address.length <= 2000;
  const link = element(isWeb ? "a" : "code", "address", shown(address, 2000));
  if (isWeb) {
    link.href = address;
    link.rel = "nofollow noopener noreferrer";
    link.target = "_blank";
  }
  line.append(link);
  return line;
}

/** A part as an element. */
function partLine(one) {
  if (typeof one.text === "string") {
    return element("p", "said", shown(one.text));
  }
  const file = isObject(one.file) ? one.file : {};
  const text = (...values) => values.find((value) => typeof value === "string" && value !== "");
  const name = text(one.filename, file.name);
  const bytes = text(one.raw, file.bytes, file.fileWithBytes);
  const address = text(one.url, file.uri, file.fileWithUri);
  if (bytes !== undefined) {
    return fileLine(bytes, name, text(one.mediaType, file.mimeType, file.mediaType));
  }
  if (address !== undefined) {
    return linkLine(address, name);
  }
  const value = one.data !== undefined ? one.data : one;
  const compact = JSON.stringify(value);
  // Indentation would make deeply nested data as long as the square of its depth.
  const pre = element("pre", "data", shown(compact.length > 5000 ? compact : JSON.stringify(value, null, 2)));
  pre.tabIndex = 0;
  return pre;
}

/* The conversation on the page */

function turn(who, title) {
  const made = element("div", `turn ${who}`);
  made.append(element("p", "by", title));
  log.hidden = false;
  log.append(made);
  while (log.children.length > LIMITS.turns) {
    free(log.firstChild);
    log.firstChild.remove();
  }
  log.scrollTop = log.scrollHeight;
  return made;
}

/** Releases the files of a part of the page. */
const free = (gone) => gone.querySelectorAll("a[download]").forEach((link) => URL.revokeObjectURL(link.href));

/** One answer of the agent, as far as it has arrived. */
class Answer {
  constructor() {
    this.turn = turn("agent", "Agent");
    this.artifacts = new Map();
    this.lines = 0;
    this.state = null;
    this.taskId = null;
    this.isMessage = false;
    this.seen = new Set();
  }

  /** Whether the answer is complete: a message, or a task that is done or waits for the user. */
  get ends() {
    return this.isMessage || isDone(this.state) || isWaiting(this.state);
  }

  add(holder, line) {
    this.lines += 1;
    if (this.lines <= LIMITS.lines) {
      holder.append(line);
    } else if (this.lines === LIMITS.lines + 1) {
      this.turn.append(element("p", "note", `More than ${LIMITS.lines} lines: the rest of this answer is not shown.`));
    }
    log.scrollTop = log.scrollHeight;
  }

  parts(holder, list) {
    list.forEach((one) => this.add(holder, partLine(one)));
  }

  /** Adds an event or a whole answer. */
  take(result) {
    const [kind, content] = formOf(result);
    const id = kind === "task" ? content.id : content.taskId;
    if ([id, content.contextId].some((one) => String(one ?? "").length > LIMITS.id)) {
      throw new Failure("answer", `The agent sent an identifier of more than ${LIMITS.id} characters.`);
    }
    if (typeof id === "string" && id !== "") {
      if (this.taskId !== null && this.taskId !== id) {
        throw new Failure("answer", "The agent sent an event of another task.");
      }
      this.taskId = id;
    }
    if (typeof content.contextId === "string") {
      conversation.contextId = content.contextId;
    }
    this[`take_${kind}`](content);
    conversation.taskId = isWaiting(this.state) ? this.taskId : undefined;
    part("cancel").disabled = false;
  }

  take_message(message) {
    this.isMessage = true;
    this.parts(this.turn, partsOf(message));
  }

  take_task(task) {
    if (Array.isArray(task.artifacts)) {
      task.artifacts.filter(isObject).forEach((artifact) => this.artifact(artifact, false));
    }
    this.take_status(task);
  }

  take_status({ status: given }) {
    const { state, message } = isObject(given) ? given : {};
    this.state = stateOf(state);
    this.badge ??= this.turn.firstChild.appendChild(element("span", "badge"));
    this.badge.textContent = this.state;
    const list = partsOf(message);
    const key = message?.messageId ?? JSON.stringify(list).slice(0, 1000);
    if (list.length > 0 && !this.seen.has(key)) {
      this.seen.add(key);
      this.parts(this.turn, list);
    }
  }

  take_artifact({ artifact, append }) {
    if (isObject(artifact)) {
      this.artifact(artifact, append === true);
    }
  }

  /** Shows a new artifact, a replacement, or further parts of one. A text continues the text before it. */
  artifact(artifact, append) {
    const id = String(artifact.artifactId ?? "");
    let known = this.artifacts.get(id);
    if (!known) {
      const box = element("div", "artifact");
      box.append(element("p", "by", shown(artifact.name || "Artifact", 100)));
      known = { box, text: null };
      this.artifacts.set(id, known);
      this.add(this.turn, box);
    } else if (!append) {
      free(known.box);
      known.box.replaceChildren(known.box.firstChild);
      known.text = null;
    }
    for (const one of partsOf(artifact)) {
      if (typeof one.text === "string" && known.text !== null) {
        if (known.text.length <= LIMITS.text) {
          known.text += one.text;
          known.box.lastChild.textContent = shown(known.text);
        }
      } else {
        known.text = typeof one.text === "string" ? one.text : null;
        this.add(known.box, partLine(one));
      }
    }
  }

  note(text) {
    this.add(this.turn, element("p", "note", text));
  }
}

/** Shows a failure, with the command that may work instead. */
function showFailure(error) {
  if (error.name === "AbortError") {
    turn("note", "This page no longer waits for the answer. The agent may still be working.");
    return;
  }
  const shownError = turn("failed", shown(error.message, 1000));
  shownError.dataset.failure = error.kind ?? "refused";
  if (["cors", "mixed", "local-network", "down", "policy", "redirect", "header", "size"].includes(error.kind)) {
    shownError.append(element("p", "", "The command does not depend on this browser:"), commandBlock());
  }
}

/* Calls */

const pause = (milliseconds, signal) =>
  new Promise((done, stop) => {
    const timer = setTimeout(done, milliseconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      stop(signal.reason);
    }, { once: true });
  });

/** Reads a stream into an answer. A response that is not a stream is the answer itself. */
async function follow(route, operation, argument, answer, signal) {
  const response = await send(route, operation, argument, signal);
  const type = response.headers.get("content-type") ?? "";
  if (!response.ok || !type.startsWith("text/event-stream")) {
    answer.take(await documentOf(route, response));
    return;
  }
  let count = 0;
  for await (const text of events(response)) {
    count += 1;
    if (count > LIMITS.events) {
      throw new Failure("size", `The stream has more than ${LIMITS.events} events; the rest was not read.`);
    }
    wired("in", `data: ${text}`);
    const event = resultIn(route, parsed(text));
    answer.take(event);
    if (answer.ends || event.final === true || event.statusUpdate?.final === true) {
      return;
    }
  }
}

/** Reads the current state of the task. */
async function reread(route, answer, signal) {
  const response = await send(route, "get", answer.taskId, signal);
  answer.take(asTask(await documentOf(route, response)));
}

/** The result of an operation on a task. */
const asTask = (result) => (isObject(result.task) ? result : { task: result });

/** Follows a task whose stream ended early: reads it, subscribes to it, and polls it if the agent cannot resume. */
async function resume(route, answer, signal) {
  answer.note("The stream ended early; the task is read again.");
  for (let tries = 0; tries < LIMITS.resumes; tries += 1) {
    await reread(route, answer, signal);
    if (answer.ends) {
      return;
    }
    try {
      await follow(route, "subscribe", answer.taskId, answer, signal);
    } catch (error) {
      if (signal.aborted || error.kind === "size") {
        throw error;
      }
      break;
    }
    if (answer.ends) {
      return;
    }
  }
  await poll(route, answer, signal);
}

/** Polls a task until it is done or waits for the user. */
async function poll(route, answer, signal) {
  let wait = 500;
  for (let count = 0; !answer.ends; count += 1) {
    if (answer.taskId === null) {
      throw new Failure("answer", "The agent gave the task no identifier, so its progress cannot be read.");
    }
    if (count === LIMITS.polls) {
      throw new Failure("answer", "The task is still not done; this page no longer polls it.");
    }
    await pause(wait, signal);
    wait = Math.min(wait * 2, 4000);
    await reread(route, answer, signal);
  }
}

/** Sends a message and reads the stream of its answer; sends it again only if the agent has not accepted it. */
async function streamed(route, message, answer, signal) {
  try {
    await follow(route, "stream", message, answer, signal);
  } catch (error) {
    if (error instanceof Refusal && error.saysNoStream && answer.state === null && answer.lines === 0) {
      const whole = await documentOf(route, await send(route, "send", message, signal));
      answer.note("The agent does not stream, so this page waits for its whole answer.");
      answer.take(whole);
      return;
    }
    // A broken stream is a TypeError. If its task is known, the answer continues from the task.
    const broke = error instanceof TypeError;
    if (answer.taskId === null || !(broke || error.kind === "answer")) {
      throw broke ? new Failure("broken", "The connection ended in the middle of the answer.") : error;
    }
    if (!broke) {
      answer.note(shown(error.message, 500));
    }
  }
  if (!answer.ends && answer.taskId !== null) {
    await resume(route, answer, signal);
  } else if (!answer.ends && answer.lines === 0) {
    throw new Failure("answer", "The stream ended without an answer.");
  }
}

/** Sends a message and follows its task to the end. */
async function exchange(route, message, answer, signal) {
  if (part("stream").checked) {
    await streamed(route, message, answer, signal);
  } else {
    answer.take(await documentOf(route, await send(route, "send", message, signal)));
  }
  await poll(route, answer, signal);
}

/** Calls `exchange`; if the agent does not know its forms, once more in those of 1.0 or of the a2a-protocol skill. */
async function exchangeInEitherForm(route, message, answer, signal) {
  const { dialect } = route;
  const { other } = dialects[dialect];
  try {
    await exchange(route, message, answer, signal);
  } catch (error) {
    const isUntouched = answer.taskId === null && answer.state === null && answer.lines === 0;
    if (!(error instanceof Refusal && error.saysUnknown && other && isUntouched)) {
      throw error;
    }
    // The next messages start with the forms that the agent knows.
    route.dialect = other;
    try {
      await exchange(route, message, answer, signal);
    } catch (second) {
      const isKnown = !(second instanceof Refusal && second.saysUnknown);
      route.dialect = isKnown ? other : dialect;
      throw isKnown ? second : error;
    }
  }
}

const chosen = () => data.interfaces[Number(part("interface").value)];

async function readFiles() {
  const files = [...part("files").files];
  const size = files.reduce((sum, { size: bytes }) => sum + bytes, 0);
  if (size > LIMITS.files) {
    throw new Failure("files", `The files have ${size} bytes in total; at most ${LIMITS.files} can be sent.`);
  }
  return Promise.all(
    files.map(async (file) => {
      const bytes = toBase64(new Uint8Array(await file.arrayBuffer()));
      return { file: { name: file.name, type: file.type || "application/octet-stream", bytes } };
    }),
  );
}

/** A new identifier for a message. `randomUUID` is missing on pages over plain http. */
function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function submit(event) {
  event.preventDefault();
  if (underWay !== null) {
    return;
  }
  const text = part("text").value;
  lastText = text;
  const route = chosen();
  const abort = new AbortController();
  underWay = { abort, route, answer: null };
  busy(true);
  try {
    const parts = [...(text.trim() ? [{ text }] : []), ...(await readFiles())];
    if (parts.length === 0) {
      throw new Failure("empty", "Type a message, or choose a file.");
    }
    const said = turn("user", "You");
    parts.forEach(({ text: words, file }) => said.append(element("p", "said", file ? `File ${shown(file.name, 100)}` : shown(words))));
    const { contextId, taskId } = conversation;
    const message = { messageId: newId(), ...(contextId && { contextId }), ...(taskId && { taskId }) };
    underWay.answer = new Answer();
    part("text").value = "";
    part("files").value = "";
    await exchangeInEitherForm(route, { message, parts }, underWay.answer, abort.signal);
  } catch (error) {
    if (underWay.answer?.lines === 0 && underWay.answer.state === null) {
      underWay.answer.turn.remove();
    }
    if (!(underWay.answer?.ends && error.name === "AbortError")) {
      showFailure(error);
    }
  } finally {
    const answer = underWay.answer;
    underWay = null;
    busy(false);
    status.textContent = isWaiting(answer?.state) ? `The task waits for you (${answer.state}): your next message continues it.` : "";
  }
}

/** Cancels the task, or only stops waiting if there is no task yet. */
async function cancel() {
  const exchanged = underWay;
  const { abort, route, answer } = exchanged;
  part("cancel").disabled = true;
  if (!answer?.taskId || exchanged.refused) {
    abort.abort();
    return;
  }
  status.textContent = "Cancelling…";
  try {
    const response = await send(route, "cancel", answer.taskId, AbortSignal.timeout(30000));
    const task = asTask(await documentOf(route, response));
    if (!answer.ends) {
      answer.take(task);
    }
    if (answer.ends) {
      abort.abort();
    }
  } catch (error) {
    if (underWay === exchanged) {
      showFailure(error);
      // The second time, the page only stops waiting.
      exchanged.refused = true;
      part("cancel").disabled = false;
    }
  }
}

function busy(is) {
  part("send").disabled = is;
  part("interface").disabled = is;
  part("new").disabled = is;
  part("cancel").disabled = !is;
  log.ariaBusy = String(is);
  status.textContent = is ? "Waiting for the agent…" : "";
}

function startAnew() {
  conversation = {};
  free(log);
  log.replaceChildren();
  log.hidden = true;
  status.textContent = "";
}

/** Chooses an interface: starts a new conversation, and clears the credentials if the origin changes. */
function choose() {
  const { origin } = chosen();
  const known = part("origin").textContent;
  conversation = {};
  if (known !== "" && known !== origin) {
    root.querySelectorAll("#console-credentials input").forEach((field) => {
      field.value = "";
    });
    status.textContent = `Credentials belong to one address: enter those for ${origin}.`;
  }
  part("origin").textContent = origin;
  const url = new URL(chosen().url);
  if (isMixed(url) && !isLocal(url.hostname)) {
    status.textContent = mixed().message;
  }
}

form.addEventListener("submit", submit);
part("cancel").addEventListener("click", cancel);
part("new").addEventListener("click", startAnew);
part("interface").addEventListener("change", choose);
part("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    form.requestSubmit();
  }
});
if (data.skillFirst) {
  data.interfaces.forEach((route) => {
    route.dialect = dialects[route.dialect].other ?? route.dialect;
  });
}
part("stream").checked = data.streams;
part("interface").value = "0";
choose();
root.dataset.ready = "";
