// A page of something that still grows is asked for again; where it has changed, its contents are replaced.
const SECONDS = 2;

export function startLive(bring) {
  if (document.querySelector("main[data-live]")) setTimeout(again, 1000 * SECONDS, bring, null);
}

async function again(bring, known) {
  let tag = known;
  try {
    const reply = await fetch(location.href, { headers: known ? { "if-none-match": known } : {} });
    tag = reply.headers.get("etag") ?? known;
    if (reply.ok && tag !== known) replace(await reply.text(), bring);
    say(reply.ok || reply.status === 304 ? "" : leadOf(await reply.text()));
  } catch {
    say("The server does not answer; this page is not updated.");
  }
  if (document.querySelector("main[data-live]")) setTimeout(again, 1000 * SECONDS, bring, tag);
}

// Whatever was opened, scrolled to, or is being used stays as it was.
function replace(text, bring) {
  if (document.hidden || document.querySelector(".player:focus-within")) return;
  const fresh = new DOMParser().parseFromString(text, "text/html").querySelector("main");
  const now = document.querySelector("main");
  if (!fresh) return;
  const open = [...now.querySelectorAll("details")].map((one) => one.open);
  [...fresh.querySelectorAll("details")].forEach((one, n) => { one.open = open[n] ?? one.open; });
  const place = scrollY;
  now.replaceWith(document.adoptNode(fresh));
  scrollTo({ top: place, behavior: "instant" });
  bring(fresh);
}

// Why a page is not there any more, as the server says it.
function leadOf(text) {
  return new DOMParser().parseFromString(text, "text/html").querySelector(".lead")?.textContent ?? "This page cannot be shown now.";
}

function say(words) {
  let line = document.querySelector("#live-problem");
  if (!line) {
    line = Object.assign(document.createElement("p"), { id: "live-problem", className: "bad" });
    line.setAttribute("role", "status");
    document.querySelector("main").before(line);
  }
  line.textContent = words;
}
