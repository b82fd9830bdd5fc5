// The text of every stop of a page's journey, and of its other views, one after the other.
//
//     node tests/said.mjs PAGE.html
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';

const BROWSERS = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const executablePath = BROWSERS.find((path) => path && existsSync(path));
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu', '--disable-quic'] });
const tab = await browser.newPage();
await tab.context().setOffline(true);
await tab.goto(pathToFileURL(resolve(process.argv[2])).href);
await tab.waitForSelector('[role=tabpanel]');
const said = [await tab.innerText('main > p'), ...(await tab.$$eval('main > details', (all) => all.map((one) => one.textContent)))];
for (const stop of await tab.$$('nav button')) {
  await stop.click();
  said.push(await tab.textContent('section'));
}
for (const view of (await tab.$$('[role=tab]')).slice(1)) {
  await view.click();
  said.push(await tab.textContent('[role=tabpanel]'));
}
console.log(said.join('\n').replace(/[ \n]+/g, ' '));
await browser.close();
