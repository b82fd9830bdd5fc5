// A page opened as a reader opens it: from a file, in headless Chromium, with the network blocked. Every view, every
// stop, dark and light, on a telephone, by keyboard; no console message, no request, no axe-core violation. Every number
// that is a link opens, and is what its parts add up to.
//
//     node tests/page.mjs PAGE.html [FOLDER for screenshots]
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';

const BROWSERS = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const FLAGS = '--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync';
const executablePath = BROWSERS.find((path) => path && existsSync(path));
if (!executablePath) {
  console.log('skipped: no Chromium on this machine (CHROMIUM=path names one)');
  process.exit(77);
}

const [page, folder] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const address = pathToFileURL(resolve(page)).href;
const wrong = [];
if (folder) mkdirSync(folder, { recursive: true });

const browser = await chromium.launch({ executablePath, args: FLAGS.split(' ') });

async function opened(colorScheme, fragment = '') {
  const context = await browser.newContext({ colorScheme, viewport: { width: 1280, height: 900 }, bypassCSP: true, reducedMotion: 'reduce' });
  await context.setOffline(true);
  const tab = await context.newPage();
  tab.on('console', (message) => wrong.push(`console ${message.type()}: ${message.text()}`));
  tab.on('pageerror', (error) => wrong.push(`error: ${error.message}`));
  tab.on('request', (request) => request.url().startsWith(address) || wrong.push(`request: ${request.url()}`));
  tab.on('dialog', (dialog) => (wrong.push(`dialog: ${dialog.message()}`), dialog.dismiss()));
  await tab.goto(address + fragment);
  await tab.waitForSelector('[role=tabpanel]');
  return tab;
}

async function examine(tab, name) {
  await tab.evaluate(axe);
  const { violations } = await tab.evaluate(() => globalThis.axe.run());
  for (const { id, help, nodes } of violations) wrong.push(`axe, ${name}: ${id}: ${help}: ${nodes[0].html.slice(0, 160)}`);
  const wide = await tab.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  if (wide > 0) wrong.push(`${name}: ${wide} px wider than the window`);
  if (folder) await tab.screenshot({ path: `${folder}/${name}.png`, fullPage: true });
}

/** Lists that are closed at first, above the views: examined open. */
async function unfold(tab) {
  for (const summary of await tab.$$('main > details > summary')) await summary.click();
}

/** All views and all stops of the first, one after the other. */
async function walk(tab, name, see) {
  const tabs = await tab.$$('[role=tab]');
  for (let view = 0; view < tabs.length; view++) {
    await tab.click(`#tab-${view}`);
    if (view > 0) await see(`${name}-view-${view + 1}`);
    else
      for (let stop = 0; stop < 8; stop++) {
        await tab.click(`nav li:nth-child(${stop + 1}) button`);
        await see(`${name}-stop-${stop + 1}`);
      }
  }
}

/** The numbers of this view that are links, some of each kind: each opens, and what is computed again is what was recorded. */
async function takeApart(tab, name) {
  const links = await tab.$$eval('[role=tabpanel] a[href^="#"]', (all) => all.map((a) => a.getAttribute('href')));
  const kinds = new Map();
  for (const link of links) kinds.set(link.replace(/\[.*/, ''), [...(kinds.get(link.replace(/\[.*/, '')) ?? []), link]);
  for (const link of [...kinds.values()].flatMap((same) => [same[0], same.at(-1)])) {
    await tab.evaluate((hash) => (location.hash = hash), link);
    await tab.waitForFunction((text) => document.querySelector('aside h2 code')?.textContent === text, link.slice(1));
    const rows = await tab.$$eval('aside tr', (all) => all.map((row) => [...row.cells].map((cell) => cell.textContent.trim().replaceAll('−', '-'))));
    const told = Object.fromEntries(rows);
    const gap = Number(told.difference ?? 0) / Math.max(1, Math.abs(Number(told['as recorded'] ?? 1)) || 1);
    if (!(gap < 1e-4)) wrong.push(`${name}: ${link} does not open to itself: ${JSON.stringify(told)}`);
    if (await tab.$('aside >> text=no number at this address')) wrong.push(`${name}: ${link} opens nothing`);
  }
}

for (const scheme of ['light', 'dark']) {
  const tab = await opened(scheme);
  await unfold(tab);
  await walk(tab, scheme, (name) => examine(tab, name));
  await tab.context().close();
}

{
  const tab = await opened('light');
  await walk(tab, 'numbers', (name) => takeApart(tab, name));
  await examine(tab, 'number');
  await tab.keyboard.press('Escape');
  if (await tab.$('aside')) wrong.push('a number stays open after Escape');
  await tab.context().close();
}

// under its own policy, by keyboard alone: to the tabs, to the attention, over its cells
{
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  await context.setOffline(true);
  const tab = await context.newPage();
  tab.on('console', (message) => wrong.push(`console ${message.type()}: ${message.text()}`));
  tab.on('pageerror', (error) => wrong.push(`error: ${error.message}`));
  await tab.goto(address);
  await tab.waitForSelector('[role=tabpanel]');
  const press = async (key, until) => {
    for (let i = 0; i < 200; i++) {
      await tab.keyboard.press(key);
      if (await tab.evaluate((selector) => document.activeElement?.matches(selector), until)) return;
    }
    wrong.push(`keyboard: ${until} is not reached by ${key}`);
  };
  await press('Tab', '[role=tab]');
  await tab.keyboard.press('ArrowRight');
  await press('Tab', '[role=application]');
  const told = () => tab.textContent('.told strong');
  const addresses = new Set([await tab.textContent('.told code')]);
  for (const key of ['ArrowDown', 'ArrowRight', 'End', 'Home']) {
    await tab.keyboard.press(key);
    addresses.add(await tab.textContent('.told code'));
    if (!(await told())) wrong.push('keyboard: a cell says nothing');
  }
  if (addresses.size < 4) wrong.push('keyboard: arrow keys do not walk over the cells');

  await tab.keyboard.press('Enter');
  if ((await tab.textContent('aside h2 code')) !== (await tab.textContent('.told code'))) wrong.push('keyboard: Enter does not open the cell’s number');
  await tab.keyboard.press('Escape');

  // the address of a cell opens that cell again
  const fragment = await tab.evaluate(() => location.hash);
  const again = await opened('light', fragment);
  const reached = await again.textContent('.told code');
  if (`#${reached}` !== decodeURIComponent(fragment)) wrong.push(`address: ${fragment} opened ${reached}`);
  await context.close();
}

// a telephone, and on it a number taken apart
{
  const tab = await opened('light');
  await tab.setViewportSize({ width: 360, height: 740 });
  await unfold(tab);
  await walk(tab, 'narrow', (name) => examine(tab, name));
  await tab.click('[role=tabpanel] a[href^="#"]');
  await tab.waitForSelector('aside h2:focus');
  await examine(tab, 'narrow-number');
}

await browser.close();
console.log(wrong.length ? [...new Set(wrong)].join('\n') : 'the page is in order');
process.exit(wrong.length ? 1 : 0);
