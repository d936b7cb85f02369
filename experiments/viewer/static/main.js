// Brings the parts of a page to life: players, the editor, filters, live updates, tooltips, and what can be saved.
import { startPlayers } from "./player.js";
import { startEditor } from "./editor.js";
import { startAsking } from "./asking.js";
import { startLive } from "./live.js";
import { startSaving } from "./saving.js";
import { startTips } from "./tips.js";

export function bring(root) {
  startPlayers(root);
  startSaving(root);
  startTips(root);
  startAsking(root);
  for (const form of root.querySelectorAll("form[data-auto]")) filtersAsYouGo(form);
}

// A filter changes the address at once; fields that are empty stay out of it.
function filtersAsYouGo(form) {
  const go = () => {
    const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value !== ""));
    location.assign(`${form.getAttribute("action")}${query.size ? "?" : ""}${query}`);
  };
  form.addEventListener("change", (event) => form.reportValidity() && event.target.name !== "run" && go());
  form.addEventListener("submit", (event) => { event.preventDefault(); go(); });
}

bring(document);
startEditor(bring);
startLive(bring);
document.documentElement.dataset.ready = "yes";
