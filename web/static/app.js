// Copies code, and completes searches as the user types. The pages work without this script.
"use strict";

/** Adds a button to a block of code that copies it. */
function addCopyButton(block) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(block.querySelector("code").textContent);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not copied";
    }
    setTimeout(() => {
      button.textContent = "Copy";
    }, 1500);
  });
  block.append(button);
}

/** Makes a search field a combobox with a list of completions (the ARIA pattern with `aria-activedescendant`). */
function completeAsTyped(input) {
  const list = document.createElement("ul");
  list.id = `${input.id}-completions`;
  list.className = "completions";
  list.role = "listbox";
  list.ariaLabel = "Completions";
  list.hidden = true;
  input.parentElement.append(list);
  input.role = "combobox";
  input.ariaAutoComplete = "list";
  input.ariaExpanded = "false";
  input.setAttribute("aria-controls", list.id);

  let chosen = -1;
  let waiting;
  let request;

  function close() {
    clearTimeout(waiting);
    request?.abort();
    chosen = -1;
    list.hidden = true;
    input.ariaExpanded = "false";
    input.removeAttribute("aria-activedescendant");
  }

  function choose(index) {
    chosen = index;
    [...list.children].forEach((option, at) => {
      option.ariaSelected = String(at === chosen);
    });
    const option = list.children[chosen];
    if (option) {
      input.setAttribute("aria-activedescendant", option.id);
      option.scrollIntoView({ block: "nearest" });
    } else {
      input.removeAttribute("aria-activedescendant");
    }
  }

  function take(option) {
    input.value = option.dataset.text;
    close();
    input.form.requestSubmit();
  }

  function show(suggestions) {
    list.replaceChildren(
      ...suggestions.map(({ text, kind }, at) => {
        const option = document.createElement("li");
        option.id = `${list.id}-${at}`;
        option.role = "option";
        option.ariaSelected = "false";
        option.dataset.text = text;
        const label = document.createElement("span");
        label.dir = "auto";
        label.textContent = text;
        const what = document.createElement("small");
        what.textContent = kind;
        option.append(label, what);
        return option;
      }),
    );
    choose(-1);
    list.hidden = suggestions.length === 0;
    input.ariaExpanded = String(!list.hidden);
  }

  async function ask() {
    const text = input.value.trim();
    if (text.length < 2) {
      close();
      return;
    }
    request?.abort();
    request = new AbortController();
    try {
      const address = `/v1/agents:suggest?q=${encodeURIComponent(text)}`;
      const answer = await fetch(address, { signal: request.signal });
      if (answer.ok) {
        show((await answer.json()).suggestions.slice(0, 8));
      }
    } catch {
      // The next letter sends a new request, and the form works without completions.
    }
  }

  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(ask, 120);
  });
  input.addEventListener("keydown", (event) => {
    const count = list.children.length;
    if (event.key === "Escape" && !list.hidden) {
      event.preventDefault();
      close();
    } else if (event.key === "Enter" && !list.hidden && chosen >= 0) {
      event.preventDefault();
      take(list.children[chosen]);
    } else if (["ArrowDown", "ArrowUp"].includes(event.key) && !list.hidden) {
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : -1;
      // One position more than the completions: the text as typed.
      choose(((chosen + 1 + step + count + 1) % (count + 1)) - 1);
    }
  });
  // Keeps the focus in the field, which would close the list before the click.
  list.addEventListener("pointerdown", (event) => event.preventDefault());
  list.addEventListener("click", (event) => {
    const option = event.target.closest("li");
    if (option) {
      take(option);
    }
  });
  input.addEventListener("blur", close);
  input.form.addEventListener("submit", close);
}

if (navigator.clipboard) {
  document.querySelectorAll(".code").forEach(addCopyButton);
}
document.querySelectorAll("input[data-complete]").forEach(completeAsTyped);
/** Describes an error in the shape of a domain or card URL; empty if there is none. Only the registry rejects it. */
function targetShape(text) {
  if (/\s/.test(text)) {
    return "This contains a space.";
  }
  const whole = text.includes("://");
  let url;
  try {
    url = new URL(whole ? text : `https://${text}`);
  } catch {
    return whole ? "This is not a URL." : "This is not a domain name.";
  }
  if (!["https:", "http:"].includes(url.protocol)) {
    return "A card URL begins with https://.";
  }
  if (!whole && (url.pathname !== "/" || url.search || url.hash || text.endsWith("/"))) {
    return "This has a path: enter the whole card URL with https://, or only the domain.";
  }
  if (url.username || url.password) {
    return "Remove the user name and password.";
  }
  return "";
}

/** Describes an error in the shape of a pasted card; empty if there is none. */
function cardShape(text) {
  let card;
  try {
    card = JSON.parse(text);
  } catch (error) {
    return `This is not JSON: ${error.message}.`;
  }
  const isObject = typeof card === "object" && card !== null && !Array.isArray(card);
  return isObject ? "" : "An agent card is a JSON object.";
}

const shapes = { target: targetShape, card: cardShape };

/** Shows an error in the shape of a field beside it while the user types. The form can still be sent. */
function checkShape(field) {
  const note = document.getElementById(`${field.id}-shape`);
  const check = shapes[field.dataset.shape];
  let waiting;
  field.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      const text = field.value.trim();
      const fault = text ? check(text) : "";
      note.textContent = fault;
      field.ariaInvalid = fault ? "true" : null;
    }, 250);
  });
}

document.querySelectorAll("[data-shape]").forEach(checkShape);

/**
 * Keys on the pages of reviews: `j` and `k` move among the reviews, `x` chooses one, `a` and `r` go to the decision and
 * stress its button. No key decides.
 */
function listenForReviewKeys(event) {
  const isTyping = event.target.closest("input:not([type=checkbox]), textarea, select");
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) {
    return;
  }
  const rows = [...document.querySelectorAll("[data-queue] > li")];
  const here = rows.findIndex((row) => row.contains(document.activeElement));
  const verdict = { a: "approve", r: "reject" }[event.key];
  if (verdict) {
    const reason = document.getElementById("reason");
    for (const button of reason?.form.querySelectorAll("button[value=approve], button[value=reject]") ?? []) {
      button.classList.toggle("quiet", button.value !== verdict);
    }
    reason?.focus();
  } else if (event.key === "j" || event.key === "k") {
    const next = event.key === "j" ? here + 1 : Math.max(here - 1, 0);
    rows[next]?.querySelector("a").focus();
  } else if (event.key === "x") {
    rows[here]?.querySelector("input")?.click();
  } else {
    return;
  }
  event.preventDefault();
}

if (document.querySelector("[data-queue], [data-decide]")) {
  document.addEventListener("keydown", listenForReviewKeys);
}

// The next batch of decisions, which the person has already ordered. It waits a moment in which they can stop: going
// to the form, by mouse or keyboard, leaves the rest to its buttons.
const batch = document.querySelector("form[data-continue]");
if (batch) {
  const timer = setTimeout(() => batch.requestSubmit(), 1500);
  for (const kind of ["focusin", "pointerdown"]) {
    batch.addEventListener(kind, () => clearTimeout(timer));
  }
}
