// Asks checkpoints for their plans for the board of a page.
export async function answerOf(address, asked, into, bring) {
  try {
    const reply = await fetch(`${address}?${new URLSearchParams(asked)}`);
    const text = await reply.text();
    if (reply.ok) into.innerHTML = text;
    else into.replaceChildren(problem(text));
  } catch {
    into.replaceChildren(problem("The server does not answer; is lakewright view still running?"));
  }
  bring(into);
}

export function startAsking(root) {
  for (const form of root.querySelectorAll("form[data-ask]")) {
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const answers = form.parentElement.querySelector("[data-answers]");
      const choice = form.elements.checkpoint;
      const wanted = form.elements.all.checked ? [...choice.options].map((one) => one.value) : [choice.value];
      const { bring } = await import("./main.js");
      answers.replaceChildren();
      for (const checkpoint of wanted) {
        const place = document.createElement("div");
        place.append("asking …");
        answers.append(place);
        await answerOf(form.dataset.ask, { board: form.dataset.board, checkpoint }, place, bring);
      }
    });
  }
}

function problem(text) {
  const line = document.createElement("p");
  line.className = "bad";
  line.textContent = text;
  return line;
}
