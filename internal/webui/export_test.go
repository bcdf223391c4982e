package webui

// ScriptPath is the address at which pages load a script.
var ScriptPath = scriptPath
