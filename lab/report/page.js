'use strict';
const root = document.documentElement;
for (const b of document.querySelectorAll('button')) b.hidden = false;
document.getElementById('theme').addEventListener('click', () => {
  const dark = getComputedStyle(root).colorScheme === 'dark' ||
    getComputedStyle(root).colorScheme !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches;
  root.dataset.theme = dark ? 'light' : 'dark';
});
const copy = document.getElementById('copy');
if (copy) copy.addEventListener('click', async () => {
  try {
    await navigator.clipboard.writeText(document.getElementById('command').textContent);
    copy.textContent = 'copied';
  } catch {
    getSelection().selectAllChildren(document.getElementById('command'));
  }
});
