// Adds a button to every block of code that copies it. The pages are whole without this script.
"use strict";

if (navigator.clipboard) {
  for (const block of document.querySelectorAll(".code")) {
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
    block.classList.add("copyable");
    block.append(button);
  }
}
